// A model that fits nowhere: how much is missing, and what would do about it.
import { citationText, findingIds } from '../../citation.ts'
import { formatBytes } from '../../units.ts'
import type { Constants } from '../cost/constants.ts'
import type { ChipFigures } from '../cost/figures.ts'
import { modelWork, storedBytes } from '../model/work.ts'
import type { WeightFormat } from '../model/work.ts'
import type { PlanRequest, Shortage } from '../types.ts'
import { pipelineCandidates, singleCandidates } from './candidates.ts'
import type { Cluster } from './cluster.ts'
import { explainShortage } from './explain.ts'
import { memorySums, rankMemoryBytes } from './memory.ts'
import { createMaker, requestBench } from './search.ts'

export interface ShortageOptions {
  readonly cluster: Cluster
  readonly eligible: readonly number[]
  readonly constants: Constants
  /** Machines one could buy, for advice. */
  readonly shop: readonly ChipFigures[]
}

/** Whether any single machine, or all of them in a row, could hold it. */
export function fitsSomehow(
  request: PlanRequest,
  options: Pick<ShortageOptions, 'cluster' | 'eligible' | 'constants'>,
): boolean {
  const bench = requestBench(request, options.cluster, options.constants)
  const maker = { ...createMaker(bench, request, 'slow'), aims: ['room'] as const }
  if (options.eligible.some((machine) => singleCandidates(maker, machine).length > 0)) return true
  const roomiest = [...options.eligible].sort(
    (a, b) =>
      (options.cluster.machines[b]?.machine.memoryFreeBytes ?? 0) -
      (options.cluster.machines[a]?.machine.memoryFreeBytes ?? 0),
  )
  for (let count = 2; count <= roomiest.length; count++)
    if (pipelineCandidates(maker, roomiest.slice(0, count)).length > 0) return true
  return false
}

function withFormat(request: PlanRequest, format: WeightFormat): PlanRequest {
  return { ...request, model: { ...request.model, format } }
}

/** What one machine would need if it held everything: the yardstick for what is missing. */
function neededBytes(request: PlanRequest): number {
  const work = modelWork(request.model.shape, request.model.format)
  const sums = memorySums(work, request)
  return rankMemoryBytes(sums, { from: 0, to: work.layers.length, share: 1, sharing: 'alone' })
}

/** The fewest machines that close the gap, and of those the smallest. */
function machineRemedy(missing: number, shop: readonly ChipFigures[]): string | null {
  const offers = shop.flatMap((chip) =>
    chip.memoryOptionsBytes.map((bytes) => {
      const lends = bytes * chip.memoryShareUsable
      return { chip, bytes, lends, count: Math.ceil(missing / lends) }
    }),
  )
  const [best] = offers
    .filter(({ count }) => count <= machinesMoreMax)
    .sort((a, b) => a.count - b.count || a.bytes - b.bytes)
  if (best === undefined) return null
  const { chip, bytes, lends, count } = best
  const what = `${chip.name} with ${Math.round(bytes / 2 ** 30)} GB`
  return count === 1
    ? `one more machine: ${what} lends ${formatBytes(lends)}`
    : `${count} more machines: each ${what} lends ${formatBytes(lends)}`
}

/** Beyond this nobody adds machines to what they have. */
const machinesMoreMax = 16

/** Bits that MLX can still convert to, with what its scales add. */
const coarseFormats = [
  { name: '3 bits', bitsPerWeight: 3.5 },
  { name: '2 bits', bitsPerWeight: 2.5 },
] as const

/** A form of the model that fits: one that exists, or one that could be made. */
function formatRemedy(request: PlanRequest, options: ShortageOptions): string | null {
  const { format, otherFormats } = request.model
  const fits = (candidate: WeightFormat): boolean =>
    candidate.bitsPerWeight < format.bitsPerWeight &&
    fitsSomehow(withFormat(request, candidate), options)
  const listed = [...otherFormats].sort((a, b) => b.bitsPerWeight - a.bitsPerWeight).find(fits)
  if (listed !== undefined)
    return `the quantisation ${listed.name} (${listed.bitsPerWeight} bits per weight) fits`
  const made = coarseFormats.find((coarse) => fits({ ...format, ...coarse }))
  return made === undefined
    ? null
    : `converted to ${made.name} per weight it fits (the catalogue lists no such files, and answers get worse)`
}

/** The least that would have to go from what runs now. */
function unloadRemedy(missing: number, options: ShortageOptions): string | null {
  const running = options.eligible
    .flatMap((index) => {
      const machine = options.cluster.machines[index]?.machine
      return machine === undefined
        ? []
        : machine.running.map((entry) => ({ ...entry, on: machine.name }))
    })
    .sort((a, b) => a.memoryBytes - b.memoryBytes)
  const one = running.find((entry) => entry.memoryBytes >= missing)
  if (one !== undefined)
    return `unloading ${one.name} from ${one.on} frees ${formatBytes(one.memoryBytes)}`
  const all = running.reduce((sum, entry) => sum + entry.memoryBytes, 0)
  return all >= missing ? `unloading everything that runs now frees ${formatBytes(all)}` : null
}

const diskBytesPerSecondAssumed = 3e9
const shortContextTokens = 2048
const streamingFindings = findingIds(['kb#2088'])

export function shortageOf(request: PlanRequest, options: ShortageOptions): Shortage {
  const needed = neededBytes(request)
  const free = options.eligible.reduce(
    (sum, index) => sum + (options.cluster.machines[index]?.machine.memoryFreeBytes ?? 0),
    0,
  )
  const remedies: string[] = []
  const format = formatRemedy(request, options)
  if (format !== null) remedies.push(format)
  const modest = {
    ...request,
    contextTokens: Math.min(request.contextTokens, shortContextTokens),
    concurrency: 1,
  }
  if (fitsSomehow(modest, options))
    remedies.push(`a context of ${modest.contextTokens} tokens for one request at a time fits`)
  const missing = Math.max(needed - free, missingDespiteTotal(needed, free))
  const unload = unloadRemedy(missing, options)
  if (unload !== null) remedies.push(unload)
  const machine = machineRemedy(missing, options.shop)
  if (machine !== null) remedies.push(machine)
  const weights = storedBytes(modelWork(request.model.shape, request.model.format))
  remedies.push(
    `streaming layers from disk would run it at about ${(weights / diskBytesPerSecondAssumed).toFixed(0)} s per token (a disk of 3 GB/s); only sensible for batches (${citationText(streamingFindings)})`,
  )
  return {
    neededBytes: needed,
    freeBytes: free,
    missingBytes: missing,
    remedies,
    kbFindings: streamingFindings,
    message: explainShortage({
      model: request.model.name,
      format: request.model.format.name,
      neededBytes: needed,
      freeBytes: free,
    }),
  }
}

/** Enough in total but cut into pieces too small for a layer or its ends: say so by a tenth. */
function missingDespiteTotal(needed: number, free: number): number {
  return needed <= free ? needed * 0.1 : 0
}
