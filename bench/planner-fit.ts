// Fits the planner's constants to the quoted rows and prints them as src/core/plan/cost/fitted.ts holds
// them: node bench/planner-fit.ts
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { constantNames } from '../src/core/plan/cost/constants.ts'
import type { ChipFigures } from '../src/core/plan/cost/figures.ts'
import { fitConstants } from '../src/core/plan/rows/fit.ts'
import { readRows } from '../src/core/plan/rows/row.ts'
import { readShapes } from '../src/core/plan/rows/row-shape.ts'
import { loadPlanTables } from '../src/models/plan-tables.ts'

const root = join(import.meta.dirname, '..')
const chips = new Map<string, ChipFigures>(
  loadPlanTables(root).chips.flatMap((entry) =>
    entry.codes.map((code) => [code, entry.chip] as const),
  ),
)
const fixture = (name: string): string =>
  readFileSync(join(root, 'test/fixtures/planner', name), 'utf8')
const shapes = readShapes(fixture('model-shapes.csv'), 'model-shapes.csv')
if (shapes.kind === 'unreadable') throw new Error(shapes.message)
const rows = readRows(fixture('rows.csv'), {
  name: 'rows.csv',
  shapes: shapes.shapes,
  knownChip: (code) => chips.has(code),
  chipCodes: [...chips.keys()],
})
if (rows.kind === 'unreadable') throw new Error(rows.message)
const chip = (code: string): ChipFigures => {
  const found = chips.get(code)
  if (found === undefined) throw new Error(code)
  return found
}
const fit = fitConstants(rows.rows, chip)
for (const [title, values] of [
  ['fittedConstants', fit.constants],
  ['fittedSpread', fit.spread],
] as const) {
  console.log(`export const ${title}: Constants = {`)
  for (const name of constantNames)
    console.log(`  ${name}: ${Number(values[name].toPrecision(title === 'fittedSpread' ? 2 : 4))},`)
  console.log('}')
}
