// The quoted rows, read once for all tests that need them.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ChipFigures } from '../src/core/plan/cost/figures.ts'
import { type Row, readRows } from '../src/core/plan/rows/row.ts'
import { readShapes } from '../src/core/plan/rows/row-shape.ts'
import { type PlanTables, loadPlanTables } from '../src/models/plan-tables.ts'

export const programDir: string = join(import.meta.dirname, '..')
export const tables: PlanTables = loadPlanTables(programDir)

const byCode = new Map<string, ChipFigures>(
  tables.chips.flatMap((entry) => entry.codes.map((code) => [code, entry.chip] as const)),
)

export function chipByCode(code: string): ChipFigures {
  const chip = byCode.get(code)
  if (chip === undefined) throw new Error(`no chip has the code ${code}`)
  return chip
}

export const chipCodes: readonly string[] = [...byCode.keys()]

export function fixture(name: string): string {
  return readFileSync(join(import.meta.dirname, 'fixtures/planner', name), 'utf8')
}

export function quotedRows(): readonly Row[] {
  const shapes = readShapes(fixture('model-shapes.csv'), 'model-shapes.csv')
  if (shapes.kind === 'unreadable') throw new Error(shapes.message)
  const rows = readRows(fixture('rows.csv'), {
    name: 'rows.csv',
    shapes: shapes.shapes,
    knownChip: (code) => byCode.has(code),
    chipCodes,
  })
  if (rows.kind === 'unreadable') throw new Error(rows.message)
  return rows.rows
}
