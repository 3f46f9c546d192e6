// How sure a prediction is. Each part of the time rests on one constant that is known so well; what
// the model itself leaves out comes on top. A cluster that was probed gets a narrower range.
import { assertNever } from '../../assert.ts'
import type { ConstantName } from './constants.ts'
import { fittedSpread } from './fitted.ts'
import { type TermName, type Terms, termNames, totalSeconds } from './terms.ts'

export interface Basis {
  readonly phase: 'decode' | 'prefill'
  readonly regime: 'fast' | 'slow'
  readonly hop: 'rdma' | 'tcp' | 'rpc'
  readonly measured: {
    readonly memory: boolean
    readonly kernels: boolean
    readonly matmul: boolean
    readonly collectives: boolean
    readonly hops: boolean
  }
  readonly chips: readonly string[]
}

/** Standard deviations that the stated range spans to either side. */
const rangeDeviations = 1.6
/** What the model leaves out: schedulers, heat, versions, how people measure. */
const modelSpread = { table: 0.11, measured: 0.055 } as const
const measuredSpread = 0.03
/** Chips on which no row was fitted carry their specification's own uncertainty. */
const unseenChipSpread = 0.06
const seenChips: ReadonlySet<string> = new Set(['M3Ultra', 'M4Pro', 'M5Max'])
/** A stated range is never wider than this from end to end, for one reading of the situation. */
const widestRange = 1.58

function termSpread(term: TermName, basis: Basis): number {
  const { measured } = basis
  const of = (isMeasured: boolean, name: ConstantName): number =>
    isMeasured ? measuredSpread : fittedSpread[name]
  switch (term) {
    case 'weights':
    case 'cache':
      return of(measured.memory, 'memoryEfficiency')
    case 'scores':
      return fittedSpread.attentionShare
    case 'launches':
      return of(measured.kernels, 'kernelSeconds')
    case 'matmul':
      return of(measured.matmul, 'matmulEfficiency')
    case 'collectives':
      return of(measured.collectives, basis.regime === 'fast' ? 'allReduceFast' : 'allReduceSlow')
    case 'wire':
      return of(measured.collectives, 'collectiveCopyBytesPerSecond')
    case 'hops':
      return of(
        measured.hops,
        basis.hop === 'rdma' ? 'hopRdma' : basis.hop === 'rpc' ? 'hopRpc' : 'hopTcp',
      )
    case 'engine':
      return fittedSpread.oldEngineSeconds
    default:
      return assertNever(term)
  }
}

/** The factor to either side of the predicted rate. */
export function rangeFactor(terms: Terms, basis: Basis): number {
  const total = totalSeconds(terms)
  const probed = basis.measured.memory && (terms.collectives === 0 || basis.measured.collectives)
  const model = probed ? modelSpread.measured : modelSpread.table
  let variance = model ** 2
  for (const term of termNames) variance += ((terms[term] / total) * termSpread(term, basis)) ** 2
  if (!probed && basis.chips.some((chip) => !seenChips.has(chip))) variance += unseenChipSpread ** 2
  return Math.min(Math.sqrt(widestRange), Math.exp(rangeDeviations * Math.sqrt(variance)))
}
