import assert from 'node:assert/strict'
import { test } from 'node:test'
import { machineId } from '../../core/ids.ts'
import { type RankLink, bestFirst } from './rank-endpoints.ts'

const link = (name: string, roundTripMinMs: number, measured: RankLink['measured']): RankLink => ({
  peer: machineId('ben'),
  link: name,
  localAddress: '10.0.0.1',
  remoteAddress: '10.0.0.2',
  roundTripMinMs,
  measured,
})
const carries = (gbps: number, slow = false): RankLink['measured'] => ({
  gbps: { slower: gbps, forward: gbps, backward: gbps },
  slow,
})
const kinds = ({ link: name }: RankLink): number => (name.startsWith('tb') ? 3 : 2)
const names = (links: readonly RankLink[]): readonly string[] =>
  bestFirst(links, kinds).map((one) => one.link)

test('bestFirst() takes the better kind, then the shorter round trip', () => {
  const ethernet = link('eth0~eth0', 0.1, carries(9))
  const far = link('eth1~eth1', 0.4, null)
  const cable = link('tb0~tb0', 0.3, null)
  assert.deepEqual(names([far, ethernet, cable]), ['tb0~tb0', 'eth0~eth0', 'eth1~eth1'])
})

test('bestFirst() lets a link that was found slow give way to those that carry more, and only then', () => {
  const ethernet = link('eth0~eth0', 0.1, carries(0.9))
  const worn = link('tb0~tb0', 0.3, carries(0.05, true))
  assert.deepEqual(names([worn, ethernet]), ['eth0~eth0', 'tb0~tb0'])
  const stillFaster = link('tb0~tb0', 0.3, carries(4, true))
  assert.deepEqual(names([ethernet, stillFaster]), ['tb0~tb0', 'eth0~eth0'])
  const unmeasured = link('eth0~eth0', 0.1, null)
  assert.deepEqual(names([unmeasured, worn]), ['tb0~tb0', 'eth0~eth0'])
})
