// The stages of a row: who holds which layers, and how ranks meet. Rows seldom say how layers were
// split, so the rule of the software that is usually used stands in.
import { assertNever } from '../../assert.ts'
import type { Constants } from '../cost/constants.ts'
import type { StageRun } from '../cost/decode.ts'
import { type ChipFigures, type MachineFigures, machineFigures } from '../cost/figures.ts'
import {
  type AllReduceModel,
  type AllReduceTransport,
  type CollectiveRegime,
  allReduceModel,
} from '../cost/links.ts'
import type { Row } from './row.ts'

export interface Reading {
  readonly chips: readonly ChipFigures[]
  readonly regime: CollectiveRegime
  readonly hop: 'rdma' | 'tcp' | 'rpc'
}

/** Thunderbolt 5 with RDMA, and TCP over it or 10-gigabit Ethernet: what rows do not say. */
export const rdmaBytesPerSecond = 6.5e9
export const tcpBytesPerSecond = 1.2e9
/** Parameters that lie idle per active one, by kind: only to ask whether an even split would fit. */
const totalPerActive = { dense: 1, moe: 10, mla: 18 } as const

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

export interface RowStage {
  readonly from: number
  readonly to: number
  readonly ranks: readonly { readonly figures: MachineFigures; readonly share: number }[]
  readonly sharing: StageRun['sharing']
  readonly allReduce: AllReduceModel | null
}

export function rowStages(row: Row, reading: Reading, constants: Constants): RowStage[] {
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
    default:
      return assertNever(row.strategy)
  }
}
