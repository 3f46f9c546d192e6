// Figures from samples, the slow flag and its likely cause.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { known, unknown } from '../machine-facts/fact.ts'
import { type LinkContext, type LinkSamples, measureLink } from './measured-link.ts'

/** Transfers of 100 MB at a given speed. */
const at = (gbps: number, count = 5) =>
  Array.from({ length: count }, () => ({ bytes: 1e8, micros: (1e8 * 8) / gbps / 1000 }))
const samples = (gbps: number, backward = gbps): LinkSamples => ({
  roundTripMicros: Array.from({ length: 100 }, (_, index) => 200 + (index % 10)),
  forward: at(gbps),
  backward: at(backward),
})
const ethernet: LinkContext = {
  class: 'ethernet',
  nominalGbps: known(10),
  duplex: known('full'),
  via: [],
  ceilingGbps: null,
  otherGbps: [],
}

test('measureLink() gives median round trip and speed beside what could be expected', () => {
  const measured = measureLink(samples(9.2), ethernet)
  assert.equal(measured.roundTripMicros?.median, 205)
  assert.equal(measured.roundTripMicros?.samples, 100)
  assert.ok(Math.abs((measured.gbps?.slower ?? 0) - 9.2) < 0.01)
  assert.equal(measured.expectedGbps, 9)
  assert.equal(measured.slow, false)
  assert.deepEqual([measured.likelyCause, measured.next], [null, null])
})

test('measureLink() flags a throttled link', () => {
  const measured = measureLink(samples(2), ethernet)
  assert.equal(measured.slow, true)
  assert.match(measured.likelyCause ?? '', /switch or a limit on the way/)
})

test('measureLink() does not blame a fast link for a slow probe', () => {
  const thunderbolt: LinkContext = {
    ...ethernet,
    class: 'rdma',
    nominalGbps: known(80),
    ceilingGbps: 5,
  }
  assert.equal(measureLink(samples(4.6), thunderbolt).slow, false)
  assert.equal(measureLink(samples(2), thunderbolt).slow, true)
})

test('measureLink() names the likely cause and what to try', () => {
  const cause = (gbps: number, context: Partial<LinkContext>, backward = gbps): string => {
    const { likelyCause, next } = measureLink(samples(gbps, backward), { ...ethernet, ...context })
    return `${likelyCause}: ${next}`
  }
  assert.match(cause(1, { duplex: known('half') }), /half duplex: replace the cable/)
  assert.match(
    cause(0.92, {
      class: 'thunderbolt-ip',
      nominalGbps: known(80),
      otherGbps: [{ class: 'ethernet', gbps: 1 }],
    }),
    /takes the ethernet link \(1 Gb\/s\)/,
  )
  assert.match(
    cause(9, { class: 'thunderbolt-ip', nominalGbps: known(40), via: ['ThunderBay Flex 8'] }),
    /ThunderBay Flex 8 in between limits the link: run a cable straight/,
  )
  assert.match(cause(1, {}, 8), /only one direction is slow \(forward\): look at the load/)
  assert.match(cause(0.2, { class: 'wifi', nominalGbps: known(1) }), /use a cable/)
  assert.match(cause(3, { class: 'rdma', nominalGbps: known(80) }), /another Thunderbolt 5 cable/)
  const jittery = {
    ...samples(2),
    roundTripMicros: [...Array.from({ length: 98 }, () => 200), 9000, 9000],
  }
  assert.match(measureLink(jittery, ethernet).likelyCause ?? '', /vary widely/)
})

test('measureLink() gives no figure from too few samples, and no flag without a nominal speed', () => {
  const few = measureLink(
    { roundTripMicros: [1, 2], forward: at(1, 2), backward: at(1, 5) },
    ethernet,
  )
  assert.deepEqual([few.roundTripMicros, few.gbps, few.slow], [null, null, false])
  const nameless = measureLink(samples(0.1), {
    ...ethernet,
    nominalGbps: unknown('not-printed', 'no speed'),
  })
  assert.deepEqual([nameless.expectedGbps, nameless.slow], [null, false])
})

test('measureLink() is not moved by one disturbed transfer', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.5, max: 100, noNaN: true }),
      fc.double({ min: 0.001, max: 0.9, noNaN: true }),
      (gbps, share) => {
        const forward = [...at(gbps), ...at(gbps * share, 1)]
        const measured = measureLink({ ...samples(gbps), forward }, ethernet)
        assert.ok(Math.abs((measured.gbps?.forward ?? 0) - gbps) < gbps * 1e-6)
      },
    ),
  )
})

test('measureLink() survives samples of zero', () => {
  const zero = { bytes: 0, micros: 0 }
  const measured = measureLink(
    { roundTripMicros: [], forward: [zero, zero, zero], backward: [] },
    ethernet,
  )
  assert.equal(measured.gbps, null)
})
