// The self-test over a cluster of two hosts: what can be done is done, and the file names nobody.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { ProbeReport } from '../../src/cli/daemon/probe-exchange.ts'
import { measurementFile } from '../../src/wire/plan-data.ts'
import { selftestBundle } from '../../src/wire/selftest-bundle.ts'
import { Box } from './hosts.ts'

let box: Box
before(async () => {
  box = await Box.open(['anna', 'ben'])
  for (const host of box.hosts) {
    host.write('config.toml', 'allow_launch = true\n')
    host.up('--model', 'none', '--memory', '1GB')
  }
  await box.gather(box.host('anna'))
  await box.allHear()
})
after(() => box.close())

test('bushel selftest tries links, ring and a kill over the cluster, and says why the rest could not be', async () => {
  const anna = box.host('anna')
  const { code, stdout, stderr } = await anna.cli('selftest', '--json')
  assert.equal(code, 0, stderr)
  const { steps } = selftestBundle.parse(JSON.parse(stdout))
  const found = new Map(steps.map(({ id, outcome }) => [id, outcome]))
  for (const id of ['link-probes', 'ring-start', 'kill-test'])
    assert.equal(found.get(id)?.kind, 'ran', JSON.stringify(found.get(id)))
  const rows = steps.flatMap(({ outcome }) => (outcome.kind === 'ran' ? outcome.measured : []))
  const value = (what: string): number => rows.find((row) => row.what === what)?.value ?? NaN
  assert.ok(value('link-forward') > 0)
  assert.ok(value('ring-all-sum-4B') > 0)
  assert.ok(value('kill-to-end') < 2000)
  const jaccl = found.get('jaccl-start')
  assert.ok(jaccl?.kind === 'skipped' && /no Macs/.test(jaccl.reason), JSON.stringify(jaccl))
  const resume = found.get('resume-match')
  assert.ok(resume?.kind === 'skipped' && /no model/.test(resume.reason), JSON.stringify(resume))
  assert.doesNotMatch(stdout, /anna|ben\b|10\.77\.1\.[12]"/)
})

test('bushel probe measures a hop and the collectives between two daemons, over the links that groups would use', async () => {
  const anna = box.host('anna')
  const { code, stdout, stderr } = await anna.cli('probe', '--links', '--json')
  assert.equal(code, 0, stderr)
  assert.match(stderr, /a hop between anna and ben\n.*ring of anna and ben/s)
  const { measured, problems, names } = JSON.parse(stdout) as ProbeReport
  assert.deepEqual(problems, [])
  const named = (ids: readonly string[]): readonly (string | undefined)[] =>
    ids.map((id) => names[id])
  const [hop] = measured.hops
  const [world] = measured.worlds
  assert.ok(hop !== undefined && world !== undefined)
  assert.deepEqual(named([hop.source, hop.target]), ['anna', 'ben'])
  assert.ok(hop.value.hopSeconds > 1e-5 && hop.value.hopSeconds < 0.1)
  assert.deepEqual(named(world.machines), ['anna', 'ben'])
  assert.equal(world.backend, 'ring')
  assert.ok(world.value.mebibyteSeconds > world.value.smallSeconds)
  // Whoever coordinates next plans with the same figures.
  for (const host of box.hosts) {
    const kept = measurementFile.parse(JSON.parse(host.read('state/measurements.json')))
    assert.equal(kept.hops[0]?.value.hopSeconds, hop.value.hopSeconds)
    assert.equal(kept.worlds.length, 1)
  }
})

test('bushel selftest says which setting a launch lacks', async () => {
  const anna = box.host('anna')
  box.host('ben').write('config.toml', '')
  const { stdout } = await anna.cli('selftest', '--json')
  const { steps } = selftestBundle.parse(JSON.parse(stdout))
  const ring = steps.find(({ id }) => id === 'ring-start')?.outcome
  assert.ok(
    ring?.kind === 'skipped' && /allow_launch = true/.test(ring.reason),
    JSON.stringify(ring),
  )
})
