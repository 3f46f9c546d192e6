// What the doctor says of links that were measured.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { probeAll } from '../../../test/support/captures.ts'
import { troubles } from '../../../test/support/diagnosis.ts'
import { aMeasure } from '../../../test/support/link-facts.ts'
import { interfaceName, scriptCluster } from '../../../test/support/scripted-macs.ts'
import { healthyPair } from '../../../test/support/sick-macs.ts'
import { type LinkFactEnd, type LinkMeasure, linkFact } from '../links/link-fact.ts'
import type { Finding } from './finding.ts'
import { diagnose } from './run-doctor.ts'
import { renderDiagnosis } from './render.ts'

const endAt = (machine: string, port: number): LinkFactEnd => {
  const mac = healthyPair.macs.find((one) => one.name === machine)
  assert.ok(mac !== undefined)
  return { machine, interface: interfaceName(mac, port) }
}
const ends = [endAt('book', 2), endAt('studio', 3)] as const

async function withMeasure(
  measured: LinkMeasure | null,
): Promise<{ readonly finding: Finding | undefined; readonly text: string }> {
  const machines = await probeAll(scriptCluster(healthyPair))
  const diagnosis = diagnose({ machines, paths: [], links: [linkFact(...ends, measured)] })
  return {
    finding: diagnosis.findings.find((one) => one.number === 24),
    text: renderDiagnosis(diagnosis, { verbose: false }),
  }
}

const slow = aMeasure({
  class: 'rdma',
  nominalGbps: 80,
  expectedGbps: 11,
  gbps: { slower: 0.94, forward: 0.94, backward: 0.95 },
  slow: true,
  likelyCause: 'the traffic takes the ethernet link (1 Gb/s) instead',
  next: 'look at the route',
  ageMs: 125_000,
})

test('diagnose() warns of a slow link with both figures, its age, the likely cause and the next step', async () => {
  const { finding, text } = await withMeasure(slow)
  assert.equal(finding?.level, 'warn')
  assert.deepEqual(finding?.machines, ['book', 'studio'])
  assert.equal(
    finding?.evidence,
    `the link from book (${ends[0].interface}) to studio (${ends[1].interface}) carries 940 Mb/s (80.0 Gb/s nominal, 11.0 Gb/s expected), measured 2 min 5 s ago; likely the traffic takes the ethernet link (1 Gb/s) instead`,
  )
  assert.equal(
    finding?.next,
    'Look at the route; then run "bushel links studio --measure" on book to see what has changed.',
  )
  assert.match(text, /! check 24, links carry what they promise\n.*\n.*\n {4}kb#2098/)
})

test('diagnose() names the machines of the one direction that is slow', async () => {
  const { finding } = await withMeasure({
    ...slow,
    likelyCause: 'only one direction is slow (backward)',
  })
  assert.match(finding?.evidence ?? '', /only one direction is slow \(from studio to book\)/)
})

test('diagnose() passes a link that carries what it promises, and claims nothing of one that nobody measured', async () => {
  const whole = await withMeasure(aMeasure({ nominalGbps: null, expectedGbps: null }))
  assert.equal(whole.finding?.level, 'pass')
  assert.match(whole.finding?.evidence ?? '', /carries 9\.2 Gb\/s \(nobody says what it should\)/)
  const never = await withMeasure(null)
  assert.equal(never.finding?.level, 'skip')
  const failed = await withMeasure(
    aMeasure({ gbps: null, error: 'the other machine did not say what arrived' }),
  )
  assert.equal(failed.finding?.level, 'unknown')
  assert.match(failed.finding?.evidence ?? '', /could not be measured: the other machine did not/)
  assert.match(failed.finding?.next ?? '', /run "bushel links studio --measure" on book/)
})

test('diagnose() lets a slow link wait for the dock that explains it', async () => {
  const docked = {
    ...healthyPair,
    cables: [{ ends: ['studio:3', 'book:2'], via: 'CalDigit TS5' }],
  } as const
  const machines = await probeAll(scriptCluster(docked))
  const diagnosis = diagnose({ machines, paths: [], links: [linkFact(...ends, slow)] })
  assert.deepEqual(
    troubles(diagnosis).filter((one) => /^(5|24) /.test(one)),
    ['5 studio+book fail'],
  )
})
