import assert from 'node:assert/strict'
import { test } from 'node:test'
import { groupId, machineId } from '../../ids.ts'
import { type PredictionRecord, type ScoreRecord, scorePredictions } from './records.ts'
import { type SpeedSample, type SpeedSigns, findSlowMachines } from './slow-machines.ts'

const prediction = (name: string, rate: number): PredictionRecord => ({
  kind: 'prediction',
  atMs: 0,
  group: groupId(name),
  model: 'm',
  strategy: 'single',
  machines: 1,
  restsOn: 'chip table',
  tokensPerSecond: { value: rate, low: rate / 1.2, high: rate * 1.2 },
  firstTokenSeconds: { value: 1, low: 0.8, high: 1.2 },
})
const measurement = (name: string, rate: number, atMs = 1): ScoreRecord => ({
  kind: 'measurement',
  atMs,
  group: groupId(name),
  tokensPerSecond: rate,
  firstTokenSeconds: 2,
  requests: 5,
})

test('scorePredictions() joins each prediction with its latest measurement and drops nothing', () => {
  const score = scorePredictions([
    prediction('a', 20),
    measurement('a', 5),
    measurement('a', 25, 2),
    prediction('b', 10),
    measurement('b', 20),
    prediction('c', 7),
  ])
  assert.equal(score.lines.length, 3)
  assert.ok(Math.abs((score.lines[0]?.rateError ?? 0) + 0.2) < 1e-12)
  assert.equal(score.lines[0]?.insideRange, false)
  assert.equal(score.lines[2]?.measured, null)
  assert.ok(Math.abs((score.medianRateError ?? 0) - 0.35) < 1e-12)
  assert.equal(score.insideRangeShare, 0)
  assert.equal(score.medianFirstTokenError, 0.5)
  assert.equal(scorePredictions([]).medianRateError, null)
})

const calm: SpeedSigns = {
  throttled: false,
  onBattery: false,
  memoryPressure: 'normal',
  otherGpuLoad: 0,
  loadPerCore: 0.6,
  plannedLink: 'rdma',
  usedLink: 'rdma',
  staleMeasurement: false,
  waitingShare: 0.1,
}
function samples(options: {
  speed: number
  seconds: number
  signs?: Partial<SpeedSigns>
  every?: number
}): SpeedSample[] {
  const every = options.every ?? 5
  return Array.from({ length: Math.floor(options.seconds / every) + 1 }, (_, index) => ({
    machine: machineId('mini'),
    atMs: index * every * 1000,
    predictedSeconds: 0.05,
    measuredSeconds: 0.05 / options.speed,
    signs: { ...calm, ...options.signs },
  }))
}

test('findSlowMachines() flags a machine that is 30% under its prediction for a minute', () => {
  const slow = findSlowMachines(samples({ speed: 0.6, seconds: 70 }), 70_000)
  assert.equal(slow.length, 1)
  assert.equal(slow[0]?.machine, 'mini')
  assert.ok(Math.abs((slow[0]?.ratio ?? 0) - 0.6) < 1e-9)
  assert.equal(slow[0]?.sinceMs, 0)
})

test('findSlowMachines() stays silent for less than a minute, for a little slower, and after a recovery', () => {
  assert.deepEqual(findSlowMachines(samples({ speed: 0.6, seconds: 50 }), 50_000), [])
  assert.deepEqual(findSlowMachines(samples({ speed: 0.75, seconds: 120 }), 120_000), [])
  const recovered = samples({ speed: 0.6, seconds: 120 }).map((sample) =>
    sample.atMs === 100_000 ? { ...sample, measuredSeconds: 0.05 } : sample,
  )
  assert.deepEqual(findSlowMachines(recovered, 120_000), [])
  assert.deepEqual(
    findSlowMachines(samples({ speed: 0.5, seconds: 70 }), 300_000),
    [],
    'old samples say nothing about now',
  )
  assert.deepEqual(
    findSlowMachines(samples({ speed: 0.5, seconds: 90, every: 30 }), 90_000),
    [],
    'gaps break a stretch',
  )
})

test('findSlowMachines() names the likely cause, the surest sign first', () => {
  const cause = (signs: Partial<SpeedSigns>): string =>
    findSlowMachines(samples({ speed: 0.5, seconds: 65, signs }), 65_000)[0]?.cause ?? ''
  assert.match(
    cause({ usedLink: 'ethernet', throttled: true }),
    /runs over ethernet instead of rdma/,
  )
  assert.match(cause({ memoryPressure: 'critical' }), /memory is short/)
  assert.match(cause({ throttled: true }), /throttles/)
  assert.match(cause({ onBattery: true }), /battery/)
  assert.match(cause({ otherGpuLoad: 0.8 }), /another program uses the GPU/)
  assert.match(cause({ loadPerCore: 4 }), /other programs keep its processor busy/)
  assert.match(cause({ waitingShare: 0.7 }), /waits for other ranks/)
  assert.match(cause({ staleMeasurement: true }), /before an update/)
  assert.match(cause({}), /no sign says why/)
})
