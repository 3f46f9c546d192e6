// Which rounds a probe has, and what the ranks of its worlds would be started with.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readCaptureFolders } from '../../../adapters/probers/access/capture-folder.ts'
import { captureName } from '../../../adapters/probers/access/recording.ts'
import { runtimeCommand } from '../../../adapters/probers/runtime-versions.ts'
import { worldEnvironment } from '../../../adapters/probe-process.ts'
import { type ProbedRank, worldJobs } from '../../../cli/daemon/probe-worlds.ts'
import { jacclWorld } from '../../../runtime/world-environment.ts'
import { probeJob } from '../../../wire/probe-job.ts'
import {
  captureFolder,
  probeAll,
  toolCapture,
  withOutputs,
} from '../../../../test/support/captures.ts'
import { healthyRuntime, scriptCluster } from '../../../../test/support/scripted-macs.ts'
import { machineId } from '../../ids.ts'
import type { MachineFacts } from '../../machine-facts/machine.ts'
import { type ProbeRounds, probeRounds } from './rounds.ts'

/** The matched pair, once the rest of its tools have answered. */
async function matchedPair(): Promise<readonly MachineFacts[]> {
  const machines = await readCaptureFolders(captureFolder('matched-pair'))
  return probeAll(
    machines.map((machine) =>
      withOutputs(machine, {
        rdma_ctl_status: toolCapture('rdma_ctl-status.enabled.txt'),
        sw_vers: toolCapture('sw_vers.macos-26.4.1.txt'),
        [captureName(runtimeCommand('python'))]: JSON.stringify(healthyRuntime),
      }),
    ),
  )
}

function rounds(
  facts: readonly MachineFacts[],
  change: Partial<Parameters<typeof probeRounds>[0]> = {},
): ProbeRounds {
  const machines = facts.map(({ name }) => ({ name, platform: 'darwin-arm64' }))
  return probeRounds({ machines, facts, busyMachines: [], linksOnly: false, ...change })
}

const kinds = ({ worlds }: ProbeRounds): readonly string[] =>
  worlds.map(({ kind, order }) => `${kind} ${order.join('+')}`)

/** A machine that says where it can be met: by the name of whom it faces, or the address that was named. */
const rank = (name: string, port: number): ProbedRank => ({
  id: machineId(name),
  place: ({ facing, address }) =>
    Promise.resolve({ host: address ?? `10.0.0.${facing.length}`, port }),
})

test('probeRounds() probes JACCL beside the ring where every check passes', async () => {
  const found = rounds(await matchedPair())
  assert.deepEqual(found.machines, ['macbook', 'studio'])
  assert.deepEqual(found.hops, [['macbook', 'studio']])
  assert.deepEqual(found.skipped, [])
  const [first, second] = found.worlds
  assert.deepEqual([first?.kind, second?.kind], ['ring', 'jaccl'])
  assert.deepEqual(rounds(await matchedPair(), { linksOnly: true }).machines, [])
})

test('worldJobs() starts the ranks of a probed JACCL world as a group would start them', async () => {
  const world = rounds(await matchedPair()).worlds[1]
  assert.ok(world?.kind === 'jaccl')
  const jobs = await worldJobs(
    world,
    world.order.map((name, index) => rank(name, 23_000 + index)),
  )
  assert.deepEqual(
    jobs.map(({ machine }) => machine),
    world.order,
  )
  for (const [index, { job }] of jobs.entries()) {
    const environment = worldEnvironment(job)
    const group = jacclWorld(
      { rank: index, size: 2, addresses: [[`${world.address}:23000`], ['10.0.0.9:1']] },
      world.matrix,
    )
    assert.deepEqual(environment, group)
    assert.equal(environment.set['MLX_RANK'], String(index))
    assert.equal(environment.set['MLX_JACCL_COORDINATOR'], `${world.address}:23000`)
    assert.ok(environment.unset.includes('MLX_HOSTFILE'))
    assert.deepEqual(environment.files, [
      { variable: 'MLX_IBV_DEVICES', content: '[[null,"rdma_en3"],["rdma_en3",null]]' },
    ])
    assert.deepEqual(probeJob.parse(JSON.parse(JSON.stringify(job))), job)
  }
})

test('worldJobs() meets each rank of a ring where the one before it dials', async () => {
  const [world] = rounds(await matchedPair()).worlds
  assert.ok(world?.kind === 'ring')
  const names = ['a', 'bb', 'ccc']
  const jobs = await worldJobs(
    { ...world, order: names },
    names.map((name, index) => rank(name, 23_000 + index)),
  )
  const addresses = [['10.0.0.3:23000'], ['10.0.0.1:23001'], ['10.0.0.2:23002']]
  for (const { job } of jobs)
    assert.deepEqual(worldEnvironment(job).files, [
      { variable: 'MLX_HOSTFILE', content: JSON.stringify(addresses) },
    ])
})

test('probeRounds() says why a pair of Macs is not probed over JACCL', async () => {
  const facts = await matchedPair()
  const busy = rounds(facts, { busyMachines: ['studio'] })
  assert.deepEqual(
    busy.worlds.map(({ kind }) => kind),
    ['ring'],
  )
  assert.match(busy.skipped.join(), /^JACCL of macbook and studio: .*studio/)
  const captured = await probeAll(await readCaptureFolders(captureFolder('matched-pair')))
  assert.match(rounds(captured).skipped.join(), /rdma_ctl/)
})

test('probeRounds() measures all machines together too, a cabled ring over JACCL, and no Linux over it', async () => {
  const names = ['anna', 'ben', 'cleo', 'dan']
  const cables = names.map((name, index) => ({
    ends: [`${name}:1`, `${names[(index + 1) % 4] ?? ''}:2`] as const,
  }))
  const macs = await probeAll(scriptCluster({ macs: names.map((name) => ({ name })), cables }))
  const found = kinds(rounds(macs))
  assert.equal(found.filter((kind) => kind.startsWith('ring')).length, 7)
  assert.ok(found.includes('jaccl anna+ben+cleo+dan'), found.join())
  // Neighbours have a cable, the two diagonals have none.
  assert.equal(found.filter((kind) => kind.startsWith('jaccl')).length, 5)
  const linux = rounds(macs, {
    machines: names.map((name) => ({ name, platform: 'linux-x64' })),
  })
  assert.equal(linux.worlds.length, 7)
  assert.deepEqual(linux.skipped, [])
})

test('probeRounds() keeps a large cluster within bounds and says so', () => {
  const machines = Array.from({ length: 16 }, (_, index) => ({
    name: `m${index}`,
    platform: 'linux-x64',
  }))
  const found = probeRounds({ machines, facts: [], busyMachines: [], linksOnly: false })
  assert.equal(found.hops.length, 45)
  assert.match(found.skipped.join(), /75 of 120 pairs/)
})
