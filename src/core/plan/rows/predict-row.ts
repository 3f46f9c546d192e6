// Predicts one row. Where the row leaves something open (the regime of the collectives, which chips
// repeat) every reading is computed: the figure lies in the middle, the range covers them all.
import { type ChipFigures, type MachineFigures, machineFigures } from '../cost/figures.ts'
import { type StageRun, stageTerms } from '../cost/decode.ts'
import type { Constants } from '../cost/constants.ts'
import {
  type AllReduceModel,
  type AllReduceTransport,
  type CollectiveRegime,
  allReduceModel,
} from '../cost/links.ts'
import { type PrefillStage, prefillSums, prefillTerms } from '../cost/prefill.ts'
import { type Terms, addTerms, noTerms, totalSeconds } from '../cost/terms.ts'
import { type Basis, rangeFactor } from '../cost/range.ts'
import { decodeSums, stageWork } from '../model/sums.ts'
import type { Row } from './row.ts'
import { rowWork } from './row-shape.ts'

export interface RowPrediction {
  readonly tokensPerSecond: number
  readonly low: number
  readonly high: number
  /** Where the time goes in the first reading of the row. */
  readonly terms: Terms
}

interface Reading {
  readonly chips: readonly ChipFigures[]
  readonly regime: CollectiveRegime
  readonly hop: 'rdma' | 'tcp' | 'rpc'
}

/** Thunderbolt 5 with RDMA, and TCP over it or 10-gigabit Ethernet: what rows do not say. */
const rdmaBytesPerSecond = 6.5e9
const tcpBytesPerSecond = 1.2e9
/** Routers and unequal lengths keep replicas from adding up. */
export const replicaShare = 0.85
/** Parameters that lie idle per active one, by kind: only to ask whether an even split would fit. */
const totalPerActive = { dense: 1, moe: 10, mla: 18 } as const

function chipSets(row: Row, chip: (code: string) => ChipFigures): ChipFigures[][] {
  const named = row.hardware.map(chip)
  const first = named[0]
  const last = named.at(-1)
  if (first === undefined || last === undefined) return []
  const missing = row.machines - named.length
  if (missing === 0) return [named]
  const filled = (extra: ChipFigures): ChipFigures[] => [
    ...named,
    ...Array.from({ length: missing }, () => extra),
  ]
  return named.length === 1 ? [filled(first)] : [filled(first), filled(last)]
}

function readings(row: Row, chip: (code: string) => ChipFigures): Reading[] {
  const { strategy, transport } = row
  const regimes: CollectiveRegime[] =
    transport === 'fast' ? ['fast'] : transport === 'slow' ? ['slow'] : ['slow', 'fast']
  const hops: Reading['hop'][] =
    transport === 'rpc'
      ? ['rpc']
      : transport === 'tcp'
        ? ['tcp']
        : transport === 'unknown'
          ? ['rdma', 'tcp']
          : ['rdma']
  const collectives =
    strategy.kind === 'tensor' || strategy.kind === 'expert' || strategy.kind === 'tensor-pipeline'
  // Prefill moves much per collective, so the regime hardly shows: one reading will do.
  const usedRegimes = !collectives || row.phase === 'prefill' ? regimes.slice(0, 1) : regimes
  const pipelined = strategy.kind === 'pipeline' || strategy.kind === 'tensor-pipeline'
  const usedHops = pipelined ? hops : hops.slice(0, 1)
  return chipSets(row, chip).flatMap((chips) =>
    usedRegimes.flatMap((regime) => usedHops.map((hop) => ({ chips, regime, hop }))),
  )
}

/**
 * Layers per stage when the row does not say: even, as mlx-lm cuts them, unless a machine could not
 * hold that; then in proportion to memory, as exo does.
 */
export function assumedSplit(
  layers: number,
  stages: readonly { readonly memoryBytes: number }[],
  totalBytes: number,
): number[] {
  const count = stages.length
  const even = stages.map(
    (_, index) => Math.floor(layers / count) + (index < layers % count ? 1 : 0),
  )
  if (
    stages.every((stage, index) => ((even[index] ?? 0) / layers) * totalBytes <= stage.memoryBytes)
  )
    return even
  const memory = stages.reduce((sum, stage) => sum + stage.memoryBytes, 0)
  const exact = stages.map((stage) => (layers * stage.memoryBytes) / memory)
  const split = exact.map(Math.floor)
  const order = exact
    .map((value, index) => ({ index, rest: value - Math.floor(value) }))
    .sort((a, b) => b.rest - a.rest)
  let left = layers - split.reduce((sum, value) => sum + value, 0)
  for (const { index } of order) {
    if (left === 0) break
    split[index] = (split[index] ?? 0) + 1
    left -= 1
  }
  return split
}

interface RowStage {
  readonly from: number
  readonly to: number
  readonly ranks: readonly { readonly figures: MachineFigures; readonly share: number }[]
  readonly sharing: StageRun['sharing']
  readonly allReduce: AllReduceModel | null
}

function rowStages(row: Row, reading: Reading, constants: Constants): RowStage[] {
  const { layers } = row.shape
  const figures = reading.chips.map((chip) => machineFigures(chip, constants))
  const first = figures[0]
  if (first === undefined) return []
  const tcp = row.transport === 'tcp' || row.transport === 'rpc'
  const reduce = (ranks: number): AllReduceModel => {
    const transport: AllReduceTransport = tcp ? 'tcp-ring' : 'mesh'
    return allReduceModel({
      ranks,
      transport,
      regime: reading.regime,
      bytesPerSecond: tcp ? tcpBytesPerSecond : rdmaBytesPerSecond,
      constants,
    })
  }
  const world = (
    members: readonly MachineFigures[],
    sharing: StageRun['sharing'],
  ): Pick<RowStage, 'ranks' | 'sharing' | 'allReduce'> =>
    members.length === 1
      ? {
          ranks: members.map((member) => ({ figures: member, share: 1 })),
          sharing: 'alone',
          allReduce: null,
        }
      : {
          ranks: members.map((member) => ({ figures: member, share: 1 / members.length })),
          sharing,
          allReduce: reduce(members.length),
        }
  switch (row.strategy.kind) {
    case 'single':
    case 'replicas':
      return [{ from: 0, to: layers, ...world([first], 'alone') }]
    case 'tensor':
      return [{ from: 0, to: layers, ...world(figures, 'tensor') }]
    case 'expert':
      return [{ from: 0, to: layers, ...world(figures, 'expert') }]
    case 'pipeline':
    case 'tensor-pipeline': {
      const ways = row.strategy.kind === 'pipeline' ? 1 : row.strategy.ways
      const stages = Array.from({ length: reading.chips.length / ways }, (_, stage) => ({
        members: figures.slice(stage * ways, (stage + 1) * ways),
        memoryBytes: reading.chips
          .slice(stage * ways, (stage + 1) * ways)
          .reduce(
            (sum, chip) => sum + Math.max(0, ...chip.memoryOptionsBytes) * chip.memoryShareUsable,
            0,
          ),
      }))
      const parameters = row.shape.quantisedParameters + row.shape.sixteenBitParameters
      const totalBytes = (parameters * totalPerActive[row.shape.kind] * row.bitsPerWeight) / 8
      const split = assumedSplit(layers, stages, totalBytes)
      let from = 0
      return stages.map((stage, index) => {
        const to = from + (split[index] ?? 0)
        const result = { from, to, ...world(stage.members, 'tensor') }
        from = to
        return result
      })
    }
  }
}

function readingTerms(row: Row, reading: Reading, constants: Constants): Terms {
  const work = rowWork(row.shape, row.bitsPerWeight)
  const stages = rowStages(row, reading, constants)
  const hop = { rdma: constants.hopRdma, tcp: constants.hopTcp, rpc: constants.hopRpc }[reading.hop]
  if (row.phase === 'prefill') {
    const sums = prefillSums(work)
    const prefillStages: PrefillStage[] = stages
    const secondsPerByte = 1 / (reading.hop === 'rdma' ? rdmaBytesPerSecond : tcpBytesPerSecond)
    return prefillTerms(
      sums,
      {
        stages: prefillStages,
        hops: stages.slice(1).map(() => ({ seconds: hop, secondsPerByte })),
      },
      { promptTokens: row.contextTokens, constants },
    )
  }
  const sums = decodeSums(work, { contextTokens: row.contextTokens, batch: 1 })
  let terms: Terms = { ...noTerms, hops: (stages.length - 1) * hop }
  for (const stage of stages)
    terms = addTerms(
      terms,
      stageTerms({
        ...stage,
        work: stageWork(sums, stage.from, stage.to),
        activationBytes: row.shape.hidden * 2,
      }),
    )
  return /2024 engine/.test(row.source)
    ? addTerms(terms, { ...noTerms, engine: constants.oldEngineSeconds })
    : terms
}

export function predictRow(
  row: Row,
  options: { readonly chip: (code: string) => ChipFigures; readonly constants: Constants },
): RowPrediction {
  const tokens = row.phase === 'prefill' ? row.contextTokens : 1
  const factor =
    row.strategy.kind === 'replicas' && row.machines > 1 ? row.machines * replicaShare : 1
  let low = Infinity
  let high = 0
  let middleLow = Infinity
  let middleHigh = 0
  let firstTerms: Terms | null = null
  for (const reading of readings(row, options.chip)) {
    const terms = readingTerms(row, reading, options.constants)
    firstTerms ??= terms
    const rate = (factor * tokens) / totalSeconds(terms)
    const basis: Basis = {
      phase: row.phase,
      regime: reading.regime,
      hop: reading.hop,
      measured: noneMeasured,
      chips: reading.chips.map((chip) => chip.key),
    }
    const spread = rangeFactor(terms, basis)
    low = Math.min(low, rate / spread)
    high = Math.max(high, rate * spread)
    middleLow = Math.min(middleLow, rate)
    middleHigh = Math.max(middleHigh, rate)
  }
  return {
    tokensPerSecond: Math.sqrt(middleLow * middleHigh),
    low,
    high,
    terms: firstTerms ?? noTerms,
  }
}

const noneMeasured: Basis['measured'] = {
  memory: false,
  kernels: false,
  matmul: false,
  collectives: false,
  hops: false,
}
