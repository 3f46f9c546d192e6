// Finds the model a person means: a catalogue name, one of its aliases, a repository of its files, or
// a folder with a config.json. What it finds is ready for the planner.
import { existsSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { nearest } from '../core/plan/ask/nearest.ts'
import { shapeFromConfig } from '../core/plan/model/shape-from-config.ts'
import type { WeightFormat } from '../core/plan/model/work.ts'
import type { PlanModel } from '../core/plan/types.ts'
import type { CatalogueCard } from '../wire/plan-data.ts'
import type { PlanTables } from './plan-tables.ts'

export type ModelLookup =
  | { readonly kind: 'found'; readonly model: PlanModel }
  | { readonly kind: 'unknown'; readonly message: string }

const unknown = (message: string): ModelLookup => ({ kind: 'unknown', message })

const formatOf = (raw: CatalogueCard['formats'][number]): WeightFormat => ({
  name: raw.name,
  bitsPerWeight: raw.bitsPerWeight,
  otherBitsPerWeight: raw.otherBitsPerWeight ?? null,
})

/** What most people run: about four bits, or the only form there is. */
function usualFormat(formats: readonly WeightFormat[]): WeightFormat | undefined {
  return [...formats].sort(
    (a, b) => Math.abs(a.bitsPerWeight - 4.5) - Math.abs(b.bitsPerWeight - 4.5),
  )[0]
}

export function findModel(asked: string, tables: PlanTables): ModelLookup {
  if (existsSync(join(asked, 'config.json'))) return modelFromFolder(asked, tables)
  const [name = '', wanted] = asked.split(':')
  const plain = name.toLowerCase()
  const card = tables.cards.find(
    (entry) =>
      entry.id === plain ||
      entry.name.toLowerCase() === plain ||
      entry.aliases.some((alias) => alias.toLowerCase() === plain) ||
      entry.formats.some((format) => format.repository?.toLowerCase() === plain),
  )
  if (card === undefined) {
    const names = tables.cards.flatMap((entry) => [entry.id, ...entry.aliases])
    const meant = nearest(plain, names)
    return unknown(
      `the model "${asked}" is not in the catalogue; ${meant === null ? 'a' : `did you mean ${meant}? A`} folder with a config.json works too`,
    )
  }
  return modelFromCard(card, tables, { wanted, repository: plain })
}

function modelFromCard(
  card: CatalogueCard,
  tables: PlanTables,
  options: { readonly wanted: string | undefined; readonly repository: string },
): ModelLookup {
  const outcome = shapeFromConfig(card.config, tables.architectures)
  if (outcome.kind === 'refused') return unknown(`${card.id}: ${outcome.message}`)
  const formats = card.formats.map(formatOf)
  const byRepository = card.formats.find(
    (format) => format.repository?.toLowerCase() === options.repository,
  )
  const format =
    options.wanted !== undefined
      ? formats.find((entry) => entry.name === options.wanted?.toLowerCase())
      : byRepository === undefined
        ? usualFormat(formats)
        : formatOf(byRepository)
  if (format === undefined)
    return unknown(
      `${card.id} is not known as "${options.wanted ?? ''}"; there are ${formats.map((entry) => entry.name).join(', ')}`,
    )
  return {
    kind: 'found',
    model: {
      id: card.id,
      name: card.name,
      shape: outcome.shape,
      architecture: outcome.architecture,
      format,
      otherFormats: formats.filter((entry) => entry.name !== format.name),
    },
  }
}

function modelFromFolder(folder: string, tables: PlanTables): ModelLookup {
  let config: unknown
  try {
    config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'))
  } catch (error) {
    return unknown(
      `${join(folder, 'config.json')} is not JSON: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  if (typeof config !== 'object' || config === null || Array.isArray(config))
    return unknown(`${join(folder, 'config.json')} holds no object`)
  const outcome = shapeFromConfig(config as Record<string, unknown>, tables.architectures)
  if (outcome.kind === 'refused') return unknown(`${folder}: ${outcome.message}`)
  const name = basename(folder)
  return {
    kind: 'found',
    model: {
      id: name,
      name,
      shape: outcome.shape,
      architecture: outcome.architecture,
      format: outcome.format,
      otherFormats: [],
    },
  }
}
