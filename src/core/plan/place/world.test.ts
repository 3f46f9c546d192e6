import assert from 'node:assert/strict'
import { test } from 'node:test'
import { request } from '../../../../test/planner-requests.ts'
import { fittedConstants } from '../cost/fitted.ts'
import type { PlanRequest } from '../types.ts'
import { createCluster } from './cluster.ts'
import { findRing, formWorlds } from './world.ts'

const cluster = (asked: PlanRequest) =>
  createCluster({ ...asked, constants: fittedConstants }).cluster
const all = (asked: PlanRequest): number[] => asked.machines.map((_, index) => index)

const options = { constants: fittedConstants, regime: 'slow' } as const

test('formWorlds() takes a mesh when every pair has RDMA', () => {
  const asked = request('llama-3.1-8b', '4xM3Ultra-96,tb5-mesh')
  const world = formWorlds(cluster(asked), all(asked), options)[0]
  assert.equal(world?.backend, 'jaccl')
})

test('formWorlds() takes a JACCL ring when only neighbours are cabled', () => {
  const asked = request('llama-3.1-8b', '4xM3Ultra-96,tb5-ring,10gbe')
  const whole = formWorlds(cluster(asked), all(asked), options)[0]
  assert.equal(whole?.backend, 'jaccl')
  // Three of a ring of four are a line: no mesh, no ring, so TCP.
  assert.equal(formWorlds(cluster(asked), [0, 1, 2], options)[0]?.backend, 'ring')
  assert.equal(formWorlds(cluster(asked), [0, 1], options)[0]?.backend, 'jaccl')
})

test('formWorlds() finds none where machines have no link', () => {
  const asked = request('llama-3.1-8b', '3xM3Ultra-96,tb5-mesh')
  const cut = { ...asked, links: asked.links.slice(0, 1) }
  assert.equal(formWorlds(cluster(cut), all(cut), options)[0], undefined)
})

test('formWorlds() makes collectives slower over TCP, slower with more ranks, faster in the fast regime', () => {
  const latency = (wires: string, ranks: number, regime: 'fast' | 'slow'): number => {
    const asked = request('llama-3.1-8b', `4xM3Ultra-96,${wires}`)
    const world = formWorlds(cluster(asked), all(asked).slice(0, ranks), options)[0]
    assert.ok(world !== undefined)
    return world.allReduce(regime).latencySeconds
  }
  assert.ok(latency('tb5-mesh', 2, 'fast') < latency('tb5-mesh', 2, 'slow'))
  assert.ok(latency('tb5-mesh', 2, 'slow') < latency('tb5-mesh', 4, 'slow'))
  assert.ok(latency('tb5-mesh', 4, 'slow') < latency('10gbe', 4, 'slow'))
  assert.ok(latency('10gbe', 4, 'slow') < latency('wifi', 4, 'slow'))
})

test('formWorlds() lays a TCP ring around a slow link', () => {
  const asked = request('llama-3.1-8b', '4xM3Ultra-96,10gbe')
  const quick = asked.links[0]?.figures
  assert.ok(quick !== undefined)
  const slow = { ...quick, bytesPerSecond: quick.bytesPerSecond / 10, latencySeconds: 0.01 }
  const [first, second] = asked.machines.map((machine) => machine.id)
  const links = asked.links.map((link) =>
    new Set([link.source, link.target, first, second]).size === 2
      ? { ...link, figures: slow }
      : link,
  )
  const costs = (one: PlanRequest) =>
    formWorlds(cluster(one), all(one), options).map((world) => world.allReduce('slow'))
  assert.deepEqual(costs({ ...asked, links }), costs(asked))
  const [world] = formWorlds(cluster({ ...asked, links }), all(asked), options)
  assert.deepEqual(world?.members, [0, 2, 1, 3])
})

test('findRing() ends, even where it must turn back again and again', () => {
  // A star: every path from the middle dies after one step.
  assert.equal(
    findRing([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], (a, b) => a === 0 || b === 0),
    null,
  )
  assert.deepEqual(
    findRing([0, 1, 2, 3], (a, b) => Math.abs(a - b) !== 2),
    [0, 1, 2, 3],
  )
  assert.deepEqual(
    findRing([0, 1, 2, 3], (a, b) => a + b !== 1 && a + b !== 5),
    [0, 2, 1, 3],
  )
})
