import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { kernelsOf } from '../model/work.ts'
import { request } from '../../../../test/planner-requests.ts'
import { machineId } from '../../ids.ts'
import { applyMeasurements } from './apply.ts'
import {
  type MachineProbe,
  measureHop,
  measureMachine,
  measureWorld,
  staleReasons,
} from './measured.ts'

const versions = { os: 'macOS 26.5', mlx: '0.32.4', worker: '0.1.0' }
const bandwidth = 700e9
const launch = 5e-6

function probe(noise: (index: number) => number = () => 1): MachineProbe {
  const shapes = [
    { bytesRead: 2e9, kernels: 300 },
    { bytesRead: 0.5e9, kernels: 900 },
    { bytesRead: 6e9, kernels: 600 },
  ]
  return {
    machine: machineId('studio'),
    versions,
    atMs: 1000,
    decode: shapes.map((shape, index) => ({
      ...shape,
      seconds: [1, 1.02, 0.98, 1.4].map(
        (factor) => (shape.bytesRead / bandwidth + shape.kernels * launch) * factor * noise(index),
      ),
    })),
    prefill: [{ flops: 4e12, seconds: [0.2, 0.21] }],
  }
}

test('measureMachine() tells reading weights from launching kernels', () => {
  const outcome = measureMachine(probe())
  assert.equal(outcome.kind, 'measured')
  if (outcome.kind !== 'measured') return
  const { value } = outcome.measured
  assert.ok(Math.abs(value.memoryBytesPerSecond / bandwidth - 1) < 0.03)
  assert.ok(Math.abs(value.kernelSeconds / launch - 1) < 0.05)
  assert.ok(Math.abs(value.matmulFlops / 19.5e12 - 1) < 0.03)
  assert.deepEqual(outcome.measured.versions, versions)
})

test('measureMachine() refuses timings that tell nothing or contradict each other', () => {
  const why = (changed: MachineProbe): string => {
    const outcome = measureMachine(changed)
    return outcome.kind === 'unusable' ? outcome.why : 'measured'
  }
  const whole = probe()
  assert.match(why({ ...whole, decode: whole.decode.slice(0, 1) }), /fewer than two/)
  assert.match(
    why({ ...whole, decode: [...whole.decode.slice(0, 1), ...whole.decode.slice(0, 1)] }),
    /too much alike/,
  )
  assert.match(why(probe((index) => (index === 1 ? 0.01 : 1))), /contradict each other/)
  assert.match(why({ ...whole, prefill: [] }), /no prefill/)
})

test('measureWorld() and measureHop() keep medians, and never a large all-reduce quicker than a small one', () => {
  const machines = [machineId('a'), machineId('b')]
  const world = measureWorld({
    machines,
    backend: 'jaccl',
    versions,
    cables: 'x',
    atMs: 1,
    smallSeconds: [30e-6, 31e-6, 900e-6],
    mebibyteSeconds: [20e-6],
  })
  assert.ok(
    world.kind === 'measured' &&
      world.measured.value.smallSeconds === 31e-6 &&
      world.measured.value.mebibyteSeconds === 31e-6,
  )
  const hop = measureHop({
    source: machineId('a'),
    target: machineId('b'),
    versions,
    cables: 'x',
    atMs: 1,
    seconds: [1e-3, 2e-3, 3e-3],
  })
  assert.ok(hop.kind === 'measured' && hop.measured.value.hopSeconds === 2e-3)
  assert.equal(
    measureWorld({
      machines,
      backend: 'ring',
      versions,
      cables: 'x',
      atMs: 1,
      smallSeconds: [],
      mebibyteSeconds: [1],
    }).kind,
    'unusable',
  )
})

test('staleReasons() names what changed: system, MLX, worker, cable', () => {
  const measured = { versions, cables: 'en3-en4' }
  assert.deepEqual(staleReasons(measured, { versions, cables: 'en3-en4' }), [])
  assert.deepEqual(
    staleReasons(measured, { versions: { ...versions, os: 'macOS 27.0' }, cables: 'en3-en4' }),
    ['the system changed from macOS 26.5 to macOS 27.0'],
  )
  assert.equal(
    staleReasons(measured, {
      versions: { ...versions, mlx: '0.33.0', worker: '0.2.0' },
      cables: 'en5-en4',
    }).length,
    3,
  )
  assert.deepEqual(staleReasons({ versions, cables: null }, { versions, cables: 'anything' }), [])
})

test('applyMeasurements() uses what still holds and says what does not', () => {
  const asked = request('llama-3.1-8b', '2xM3Ultra-96,tb5-mesh')
  const [first, second] = asked.machines.map((machine) => machine.id)
  assert.ok(first !== undefined && second !== undefined)
  const outcome = measureMachine({ ...probe(), machine: first })
  assert.ok(outcome.kind === 'measured')
  const hop = measureHop({
    source: second,
    target: first,
    versions,
    cables: 'en3',
    atMs: 1,
    seconds: [9e-4],
  })
  assert.ok(hop.kind === 'measured')
  const world = measureWorld({
    machines: [first, second],
    backend: 'jaccl',
    versions,
    cables: 'en3',
    atMs: 1,
    smallSeconds: [3e-5],
    mebibyteSeconds: [3e-4],
  })
  assert.ok(world.kind === 'measured')
  const measurements = {
    machines: [outcome.measured],
    hops: [hop.measured],
    worlds: [world.measured],
  }
  const fresh = applyMeasurements(asked, measurements, {
    versions: () => versions,
    cables: () => 'en3',
  })
  assert.deepEqual(fresh.stale, [])
  assert.equal(fresh.links[0]?.figures.hopSeconds, 9e-4)
  assert.ok((fresh.machines[0]?.measurement.memoryBytesPerSecond ?? 0) > 0)
  assert.equal(fresh.machines[1]?.measurement.memoryBytesPerSecond, undefined)
  assert.equal(fresh.worlds.length, 1)
  const replugged = applyMeasurements(asked, measurements, {
    versions: () => versions,
    cables: () => 'en5',
  })
  assert.equal(replugged.worlds.length, 0)
  assert.equal(replugged.links[0]?.figures.hopSeconds, undefined)
  assert.ok(
    (replugged.machines[0]?.measurement.memoryBytesPerSecond ?? 0) > 0,
    'a cable says nothing about a chip',
  )
  assert.match(
    replugged.stale.join('\n'),
    /m3ultra-1 and m3ultra-2 no longer counts: a cable or route changed; run "bushel probe"/,
  )
})

test('kernelsOf() counts a layer as the probe of the worker does', () => {
  const source = readFileSync(
    join(import.meta.dirname, '../../../../worker/bushel_worker/probe/synthetic.py'),
    'utf8',
  )
  const counted = /^KERNELS_PER_LAYER = (\d+)$/m.exec(source)?.[1]
  assert.equal(Number(counted), kernelsOf('grouped', false))
})
