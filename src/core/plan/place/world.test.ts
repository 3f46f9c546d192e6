import assert from 'node:assert/strict'
import { test } from 'node:test'
import { request } from '../../../../test/planner-requests.ts'
import { fittedConstants } from '../cost/fitted.ts'
import type { PlanRequest } from '../types.ts'
import { createCluster } from './cluster.ts'
import { findRing, formWorld } from './world.ts'

const cluster = (asked: PlanRequest) =>
  createCluster({ ...asked, constants: fittedConstants }).cluster
const all = (asked: PlanRequest): number[] => asked.machines.map((_, index) => index)

test('formWorld() takes a mesh when every pair has RDMA', () => {
  const asked = request('llama-3.1-8b', '4xM3Ultra-96,tb5-mesh')
  const world = formWorld(cluster(asked), all(asked), fittedConstants)
  assert.equal(world?.backend, 'jaccl')
})

test('formWorld() takes a JACCL ring when only neighbours are cabled', () => {
  const asked = request('llama-3.1-8b', '4xM3Ultra-96,tb5-ring,10gbe')
  const whole = formWorld(cluster(asked), all(asked), fittedConstants)
  assert.equal(whole?.backend, 'jaccl')
  // Three of a ring of four are a line: no mesh, no ring, so TCP.
  assert.equal(formWorld(cluster(asked), [0, 1, 2], fittedConstants)?.backend, 'ring')
  assert.equal(formWorld(cluster(asked), [0, 1], fittedConstants)?.backend, 'jaccl')
})

test('formWorld() finds none where machines have no link', () => {
  const asked = request('llama-3.1-8b', '3xM3Ultra-96,tb5-mesh')
  const cut = { ...asked, links: asked.links.slice(0, 1) }
  assert.equal(formWorld(cluster(cut), all(cut), fittedConstants), null)
})

test('formWorld() makes collectives slower over TCP, slower with more ranks, faster in the fast regime', () => {
  const latency = (wires: string, ranks: number, regime: 'fast' | 'slow'): number => {
    const asked = request('llama-3.1-8b', `4xM3Ultra-96,${wires}`)
    const world = formWorld(cluster(asked), all(asked).slice(0, ranks), fittedConstants)
    assert.ok(world !== null)
    return world.allReduce(regime).latencySeconds
  }
  assert.ok(latency('tb5-mesh', 2, 'fast') < latency('tb5-mesh', 2, 'slow'))
  assert.ok(latency('tb5-mesh', 2, 'slow') < latency('tb5-mesh', 4, 'slow'))
  assert.ok(latency('tb5-mesh', 4, 'slow') < latency('10gbe', 4, 'slow'))
  assert.ok(latency('10gbe', 4, 'slow') < latency('wifi', 4, 'slow'))
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
