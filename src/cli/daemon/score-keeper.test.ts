import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { factsOf } from '../../../test/support/captures.ts'
import type { PlacedReason } from '../../core/cluster/advice.ts'
import { type GroupPlan, freelyCut } from '../../core/cluster/group-plan.ts'
import { type MachineState, type OwnHolding, initialState } from '../../core/cluster/state.ts'
import { deploymentId, groupId, machineId, modelDigest } from '../../core/ids.ts'
import { known } from '../../core/machine-facts/fact.ts'
import { predictionFile, readScore } from '../plan/score-file.ts'
import { ScoreKeeper } from './score-keeper.ts'

const home = mkdtempSync(join(tmpdir(), 'bushel-score-'))
after(() => rmSync(home, { recursive: true }))

const self = machineId('a'.repeat(64))
const range = { value: 20, low: 16, high: 24 }
const reason: PlacedReason = {
  why: 'best',
  kbFindings: [],
  predicted: { tokensPerSecond: range, firstTokenSeconds: range, restsOn: 'measured here' },
}
const model = {
  name: 'small',
  digest: modelDigest('d'.repeat(64)),
  architecture: 'llama',
  layers: 4,
  weightsBytes: 1e9,
  parameters: 1e9,
  kvBytesPerToken: 1000,
  contextTokens: 2048,
  defaults: {},
  cut: freelyCut,
}
const plan: GroupPlan = {
  group: groupId('g1'),
  formation: 0,
  deployment: deploymentId('small'),
  model,
  strategy: 'single',
  contextTokens: 2048,
  stages: [
    {
      layers: [0, 4],
      ranks: [{ machine: self, memoryBytes: 2e9, share: 1 }],
      backend: 'none',
      worldStrategy: 'none',
    },
  ],
  reason,
}
function stateAt(
  statsMs: number,
  figures: { tokensPerSecond: number; queue: number },
): MachineState {
  const holding = { plan, rank: 0, state: 'ready', statsMs, ...figures } as unknown as OwnHolding
  const base = initialState({ id: self, name: 'mini' } as unknown as MachineState['self'], {
    nowMs: 0,
  })
  return { ...base, holdings: new Map([['g1#0', holding]]) }
}

function unpredicted(holding: OwnHolding): OwnHolding {
  const { reason: _reason, ...fixed } = holding.plan
  return { ...holding, plan: fixed }
}

async function keeper(
  folder: string,
): Promise<{ keep: ScoreKeeper; setNow: (ms: number) => void }> {
  let nowMs = 0
  const facts = (await factsOf('linux'))['h200']
  assert.ok(facts !== undefined)
  const keep = new ScoreKeeper({
    file: predictionFile(join(home, folder)),
    nowMs: () => nowMs,
    wallMs: () => nowMs,
    ownFacts: () =>
      Promise.resolve({ ...facts, power: { ...facts.power, source: known('battery' as const) } }),
    loadPerCore: () => 0.5,
    warn: (text) => assert.fail(text),
  })
  return { keep, setNow: (ms) => (nowMs = ms) }
}

test('ScoreKeeper keeps the prediction of a group and what its head then measured', async () => {
  const { keep, setNow } = await keeper('kept')
  for (let second = 0; second < 60; second += 2) {
    setNow(second * 1000)
    keep.look(stateAt(second * 1000, { tokensPerSecond: 18, queue: 1 }))
    keep.haveRead(groupId('g1'), { tokens: 512, seconds: 1 })
  }
  const score = readScore(join(home, 'kept'))
  assert.equal(score.lines.length, 1)
  const [line] = score.lines
  assert.equal(line?.measured?.tokensPerSecond, 18)
  assert.equal(line?.insideRange, true)
  assert.ok(Math.abs((line?.rateError ?? 0) - 1 / 9) < 1e-9)
  assert.equal(line?.measured?.firstTokenSeconds, 2, 'scaled to the prompt that was predicted')
  assert.deepEqual(keep.slow(), [])
  const lines = readFileSync(predictionFile(join(home, 'kept')), 'utf8')
    .trim()
    .split('\n')
  assert.ok(lines.length <= 3, 'it writes seldom')
})

test('ScoreKeeper flags a machine that stays under 70% for a minute, with the likely cause', async () => {
  const { keep, setNow } = await keeper('slow')
  for (let second = 0; second <= 90; second += 2) {
    setNow(second * 1000)
    keep.look(stateAt(second * 1000, { tokensPerSecond: 10, queue: 1 }))
    await Promise.resolve()
    if (second === 40) assert.deepEqual(keep.slow(), [], 'not before a minute')
  }
  const [slow] = keep.slow()
  assert.equal(slow?.machine, self)
  assert.equal(slow?.group, 'g1')
  assert.ok(Math.abs((slow?.ratio ?? 0) - 0.5) < 1e-9)
  assert.match(slow?.cause ?? '', /battery/)
})

test('ScoreKeeper says nothing of a group that nobody predicted, or that answers many at once', async () => {
  const { keep, setNow } = await keeper('busy')
  for (let second = 0; second <= 90; second += 2) {
    setNow(second * 1000)
    keep.look(stateAt(second * 1000, { tokensPerSecond: 10, queue: 3 }))
  }
  assert.deepEqual(keep.slow(), [])
  assert.equal(readScore(join(home, 'busy')).lines[0]?.measured, null)
  const other = await keeper('none')
  const state = stateAt(0, { tokensPerSecond: 10, queue: 1 })
  const holdings = new Map([...state.holdings].map(([key, one]) => [key, unpredicted(one)]))
  other.keep.look({ ...state, holdings })
  assert.throws(() => readScore(join(home, 'none')), /no predictions are kept yet/)
})
