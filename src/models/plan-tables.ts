// Reads the planner's data files from the program's folder and turns them into the figures that the
// pure planner works on. A damaged file stops here, with its name and the place.
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { z } from 'zod'
import type { ChipFigures } from '../core/plan/cost/figures.ts'
import type { LinkEntry } from '../core/plan/cost/links.ts'
import type { Architecture } from '../core/plan/model/architecture.ts'
import type { WorkerAbilities } from '../core/plan/types.ts'
import { GB, GiB } from '../core/units.ts'
import {
  type CatalogueCard,
  type ChipFile,
  abilityFile,
  architectureFile,
  catalogueFile,
  chipFile,
  linkFile,
} from '../wire/plan-data.ts'

export class DamagedDataError extends Error {
  override readonly name = 'DamagedDataError'
}

export interface PlanTables {
  readonly chips: readonly ChipEntry[]
  readonly links: readonly LinkEntry[]
  readonly architectures: readonly Architecture[]
  readonly abilities: WorkerAbilities
  readonly cards: readonly CatalogueCard[]
}

export interface ChipEntry {
  readonly chip: ChipFigures
  /** Key, aliases and codes: everything a person may type. */
  readonly names: readonly string[]
  readonly codes: readonly string[]
  readonly launchPriceUsd: number
}

function read<Schema extends z.ZodType>(path: string, schema: Schema): z.infer<Schema> {
  let json: unknown
  try {
    json = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new DamagedDataError(
      `${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  const parsed = schema.safeParse(json)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  throw new DamagedDataError(
    `${path} is damaged at ${issue?.path.join('.') ?? 'its top'}: ${issue?.message ?? 'it has another form'}`,
  )
}

/** CUDA launches by graph, so its clock says nothing about launch time: the reference stands in. */
const referenceClockHertz = 1.38e9

function chipEntry(raw: ChipFile['chips'][number]): ChipEntry {
  return {
    chip: {
      key: raw.key,
      name: raw.name,
      kind: raw.kind,
      memoryBandwidthBytesPerSecond: raw.memoryBandwidthGBs * GB,
      vectorFlops: raw.vectorTflops * 1e12,
      matrixFlops: raw.matrixTflops * 1e12,
      clockHertz: raw.kind === 'cuda' ? referenceClockHertz : raw.gpuClockMHz * 1e6,
      memoryOptionsBytes: raw.memoryOptionsGiB.map((size) => size * GiB),
      memoryShareUsable: raw.memoryShareUsable,
      rdmaPorts: raw.rdmaPorts,
      wattsIdle: raw.wattsIdle,
      wattsLoad: raw.wattsLoad,
    },
    names: [raw.key, ...raw.aliases.map((alias) => alias.replaceAll(' ', '')), ...raw.codes],
    codes: raw.codes,
    launchPriceUsd: raw.launchPriceUsd,
  }
}

export function loadPlanTables(programDir: string): PlanTables {
  const data = join(programDir, 'data')
  const catalogue = join(data, 'catalogue')
  const files = readdirSync(catalogue).filter((file) => file.endsWith('.json'))
  return {
    chips: read(join(data, 'chips.json'), chipFile).chips.map(chipEntry),
    links: read(join(data, 'links.json'), linkFile).links,
    architectures: read(join(data, 'architectures.json'), architectureFile).architectures,
    abilities: read(join(data, 'worker-abilities.json'), abilityFile).abilities,
    cards: files.sort().flatMap((file) => read(join(catalogue, file), catalogueFile).models),
  }
}
