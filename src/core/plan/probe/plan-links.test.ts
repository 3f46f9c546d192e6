import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { aMeasure } from '../../../../test/support/link-facts.ts'
import { loadPlanTables } from '../../../models/plan-tables.ts'
import { machineId } from '../../ids.ts'
import { type LinkMeasure, linkFact } from '../../links/link-fact.ts'
import { known, unknown } from '../../machine-facts/fact.ts'
import type { Link } from '../../topology/links.ts'
import type { LinkFigures } from '../cost/links.ts'
import { planLinks } from './plan-links.ts'

const entries = loadPlanTables(join(import.meta.dirname, '../../../..')).links
const idOf = new Map([
  ['anna', machineId('a')],
  ['ben', machineId('b')],
])
const end = (machine: string, name: string): Link['ends'][0] => ({
  machine,
  interface: name,
  receptacle: null,
  rdmaDevice: null,
  address: null,
})
const tenGigabit: Link = {
  class: 'ethernet',
  ends: [end('anna', 'en0'), end('ben', 'en7')],
  gbps: known(10),
  proof: 'same-subnet',
  via: [],
  rdma: null,
}

/** The figures of a link, with its measurement told by the other end. */
function planned(link: Link, measured: LinkMeasure | null): LinkFigures {
  const told = linkFact(
    { machine: 'ben', interface: 'en7' },
    { machine: 'anna', interface: 'en0' },
    measured,
  )
  const found = planLinks({ links: [link], measured: [told], entries, idOf })
  assert.equal(found.length, 2)
  assert.deepEqual(found[0]?.figures, found[1]?.figures)
  return found[0]?.figures ?? assert.fail('no link')
}

test('planLinks() plans with what a link carries, and keeps what it should and the age', () => {
  const slow = aMeasure({ gbps: { slower: 0.4, forward: 0.4, backward: 8 }, slow: true })
  const figures = planned(tenGigabit, slow)
  assert.equal(figures.bytesPerSecond, 50e6)
  assert.deepEqual(figures.measured, { nominalBytesPerSecond: 1.25e9, ageMs: 5000 })
})

test('planLinks() takes the nominal figure where nothing was measured', () => {
  for (const measured of [null, aMeasure({ gbps: null, error: 'it did not answer' })]) {
    const figures = planned(tenGigabit, measured)
    assert.equal(figures.bytesPerSecond, 1.1e9)
    assert.equal(figures.measured, undefined)
  }
})

test('planLinks() does not take the limit of its own probe for that of a link', () => {
  const wide: Link = { ...tenGigabit, gbps: known(200) }
  const measured = aMeasure({
    gbps: { slower: 9, forward: 9, backward: 9 },
    transport: { gbps: 10, roundTripMicros: 100 },
  })
  assert.equal(planned(wide, measured).bytesPerSecond, 12e9)
  const clear = aMeasure({ ...measured, transport: { gbps: 40, roundTripMicros: 100 } })
  assert.equal(planned(wide, clear).bytesPerSecond, 1.1e9)
})

test('planLinks() leaves RDMA to what was measured over RDMA', () => {
  const slow = aMeasure({ gbps: { slower: 1, forward: 1, backward: 1 }, slow: true })
  const figures = planned({ ...tenGigabit, class: 'rdma', gbps: known(80) }, slow)
  assert.equal(figures.bytesPerSecond, 6.5e9)
  assert.equal(figures.measured, undefined)
})

test('planLinks() adds the round trip of a far link, less what our own software takes', () => {
  const trips = (median: number): LinkMeasure =>
    aMeasure({ roundTripMicros: { median, p99: median, samples: 30 } })
  assert.equal(planned(tenGigabit, trips(300)).latencySeconds, 0)
  const far = planned(tenGigabit, trips(20_120)).latencySeconds
  assert.ok(Math.abs(far - (0.01 - 0.00015)) < 1e-9, String(far))
})

test('planLinks() finds links alike that differ by noise alone', () => {
  const at = (gbps: number): LinkFigures =>
    planned(tenGigabit, aMeasure({ gbps: { slower: gbps, forward: gbps, backward: gbps } }))
  assert.equal(at(5.011).bytesPerSecond, at(5.032).bytesPerSecond)
})

test('planLinks() takes the slowest of a class for a link whose speed nobody tells', () => {
  const nameless: Link = { ...tenGigabit, gbps: unknown('not-printed', 'no speed') }
  assert.equal(planned(nameless, null).bytesPerSecond, 112e6)
  const measured = aMeasure({ nominalGbps: null, expectedGbps: null })
  assert.equal(planned(nameless, measured).bytesPerSecond, 1.2e9)
})

test('planLinks() tells Thunderbolt 4 from 5 by what the port says', () => {
  const thunderbolt = (gbps: number): Link => ({
    ...tenGigabit,
    class: 'thunderbolt-ip',
    gbps: known(gbps),
  })
  assert.equal(planned(thunderbolt(40), null).bytesPerSecond, 2e9)
  assert.equal(planned(thunderbolt(80), null).bytesPerSecond, 2.5e9)
})
