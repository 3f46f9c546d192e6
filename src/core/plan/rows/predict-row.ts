// Predicts one row. Where the row leaves something open (the regime of the collectives, which chips
// repeat) every reading is computed: the figure lies in the middle, the range covers them all.
import type { ChipFigures } from '../cost/figures.ts'
import { roofSeconds, stageTerms } from '../cost/decode.ts'
import type { Constants } from '../cost/constants.ts'
import type { CollectiveRegime } from '../cost/links.ts'
import { type PrefillStage, type PrefillSums, prefillSums, prefillTerms } from '../cost/prefill.ts'
import { type Terms, addTerms, noTerms, totalSeconds } from '../cost/terms.ts'
import { type Basis, rangeFactor } from '../cost/range.ts'
import { type DecodeSums, decodeSums, stageWork } from '../model/sums.ts'
import type { Row } from './row.ts'
import { type Reading, rdmaBytesPerSecond, rowStages, tcpBytesPerSecond } from './row-stages.ts'
import { rowWork } from './row-shape.ts'

export interface RowPrediction {
  readonly tokensPerSecond: number
  readonly low: number
  readonly high: number
  /** Where the time goes in the first reading of the row. */
  readonly terms: Terms
}

/** Routers and unequal lengths keep replicas from adding up. */
export const replicaShare = 0.85

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

/** Sums of a row do not change with the constants: a fit asks for them thousands of times. */
const knownSums = new WeakMap<Row, { readonly decode: DecodeSums; readonly prefill: PrefillSums }>()

function rowSums(row: Row): { readonly decode: DecodeSums; readonly prefill: PrefillSums } {
  let sums = knownSums.get(row)
  if (sums === undefined) {
    const work = rowWork(row.shape, row.bitsPerWeight)
    sums = {
      decode: decodeSums(work, { contextTokens: row.contextTokens, batch: 1 }),
      prefill: prefillSums(work),
    }
    knownSums.set(row, sums)
  }
  return sums
}

function readingTerms(row: Row, reading: Reading, constants: Constants): Terms {
  const stages = rowStages(row, reading, constants)
  const hop = { rdma: constants.hopRdma, tcp: constants.hopTcp, rpc: constants.hopRpc }[reading.hop]
  if (row.phase === 'prefill') {
    const prefillStages: PrefillStage[] = stages
    const secondsPerByte = 1 / (reading.hop === 'rdma' ? rdmaBytesPerSecond : tcpBytesPerSecond)
    return prefillTerms(
      rowSums(row).prefill,
      {
        stages: prefillStages,
        hops: stages.slice(1).map(() => ({ seconds: hop, secondsPerByte })),
      },
      { promptTokens: row.contextTokens, constants },
    )
  }
  const sums = rowSums(row).decode
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
  return row.oldEngine ? addTerms(terms, { ...noTerms, engine: constants.oldEngineSeconds }) : terms
}

/** Decode steps per second that memory alone would allow; prefill has no such roof. */
function readingRoof(row: Row, reading: Reading, constants: Constants): number {
  if (row.phase === 'prefill') return Infinity
  const sums = rowSums(row).decode
  let seconds = 0
  for (const stage of rowStages(row, reading, constants))
    seconds += roofSeconds({ ...stage, work: stageWork(sums, stage.from, stage.to) })
  return 1 / seconds
}

export function predictRow(
  row: Row,
  options: { readonly chip: (code: string) => ChipFigures; readonly constants: Constants },
): RowPrediction {
  const tokens = row.phase === 'prefill' ? row.contextTokens : 1
  let low = Infinity
  let high = 0
  let middleLow = Infinity
  let middleHigh = 0
  let firstTerms: Terms | null = null
  for (const reading of readings(row, options.chip)) {
    const groups = groupsOf(row, reading)
    const all = groups.map((group) => readingTerms(row, group, options.constants))
    const terms = all[0] ?? noTerms
    firstTerms ??= terms
    const share = groups.length > 1 ? replicaShare : 1
    const rate = share * sumOf(all.map((one) => tokens / totalSeconds(one)))
    const roof = share * sumOf(groups.map((group) => readingRoof(row, group, options.constants)))
    const basis: Basis = {
      phase: row.phase,
      regime: reading.regime,
      hop: reading.hop,
      measured: noneMeasured,
      chips: reading.chips.map((chip) => chip.key),
    }
    const spread = rangeFactor(terms, basis)
    low = Math.min(low, rate / spread)
    high = Math.max(high, Math.min(rate * spread, roof))
    middleLow = Math.min(middleLow, rate)
    middleHigh = Math.max(middleHigh, rate)
  }
  const tokensPerSecond = Math.sqrt(middleLow * middleHigh)
  // Both regimes of collectives are told in full; which chip repeats, or which wire, is a lesser doubt.
  const most = isRegimeOpen(row) ? Infinity : Math.sqrt(widestRange)
  return {
    tokensPerSecond,
    low: Math.max(low, tokensPerSecond / most),
    high: Math.min(high, tokensPerSecond * most),
    terms: firstTerms ?? noTerms,
  }
}

/** No stated range is wider than this from end to end, where the regime is known or does not matter. */
const widestRange = 1.6

function isRegimeOpen(row: Row): boolean {
  const { kind } = row.strategy
  const collectives = kind === 'tensor' || kind === 'expert' || kind === 'tensor-pipeline'
  return collectives && row.phase === 'decode' && ['unknown', 'rdma'].includes(row.transport)
}

/** Replicas answer side by side, each on its own chip; anything else is one group. */
function groupsOf(row: Row, reading: Reading): readonly Reading[] {
  if (row.strategy.kind !== 'replicas') return [reading]
  return reading.chips.map((chip) => ({ ...reading, chips: [chip] }))
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)

const noneMeasured: Basis['measured'] = {
  memory: false,
  kernels: false,
  matmul: false,
  collectives: false,
  hops: false,
}
