// `bushel predict`: predictions for rows of a table, in its order. With measured values in the table
// and without --json, every error is shown.
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import type { ChipFigures } from '../../core/plan/cost/figures.ts'
import { fittedConstants } from '../../core/plan/cost/fitted.ts'
import { medianOf } from '../../core/plan/probe/measured.ts'
import { predictRow } from '../../core/plan/rows/predict-row.ts'
import { type Row, readRows } from '../../core/plan/rows/row.ts'
import { rowShapeFromModel } from '../../core/plan/rows/row-shape-from-model.ts'
import { type RowShape, readShapes } from '../../core/plan/rows/row-shape.ts'
import { findModel } from '../../models/catalogue.ts'
import { type PlanTables, loadPlanTables } from '../../models/plan-tables.ts'
import { type CliContext, UserError, exitCodes } from '../command.ts'
import { figure, percent, table } from '../plan/text.ts'

interface Options {
  readonly rows: string
  readonly shapes: string
  readonly json?: boolean
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new UserError(
      `${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      {
        exitCode: exitCodes.usage,
      },
    )
  }
}

export function register(command: Command, context: CliContext): void {
  command
    .requiredOption('--rows <file>', 'CSV of what to predict')
    .requiredOption('--shapes <file>', 'CSV of model shapes')
    .action((options: Options) => {
      const usage = (message: string): UserError =>
        new UserError(message, { exitCode: exitCodes.usage })
      const tables = loadPlanTables(context.programDir)
      const chips = new Map<string, ChipFigures>(
        tables.chips.flatMap((entry) => entry.codes.map((code) => [code, entry.chip] as const)),
      )
      const shapes = readShapes(readText(options.shapes), options.shapes)
      if (shapes.kind === 'unreadable') throw usage(shapes.message)
      const rows = readRows(readText(options.rows), {
        name: options.rows,
        shapes: withCatalogue(shapes.shapes, tables),
        knownChip: (code) => chips.has(code),
        chipCodes: [...chips.keys()],
      })
      if (rows.kind === 'unreadable') throw usage(rows.message)
      const chip = (code: string): ChipFigures => {
        const found = chips.get(code)
        if (found === undefined) throw usage(`the hardware code "${code}" is unknown`)
        return found
      }
      const predictions = rows.rows.map((row) => ({
        row,
        prediction: predictRow(row, { chip, constants: fittedConstants }),
      }))
      if (options.json === true)
        context.out.json(
          predictions.map(({ row, prediction }) => ({
            phase: row.phase,
            model: row.shape.model,
            line: row.line,
            predicted_tok_s: prediction.tokensPerSecond,
            low: prediction.low,
            high: prediction.high,
          })),
        )
      else context.out.result(renderRows(predictions))
    })
}

/** Models that the shapes file does not list are looked up in the catalogue, by name or alias. */
function withCatalogue(
  listed: ReadonlyMap<string, RowShape>,
  tables: PlanTables,
): ReadonlyMap<string, RowShape> {
  const shapes = new Map<string, RowShape>()
  for (const card of tables.cards)
    for (const name of [card.id, ...card.aliases]) {
      const found = findModel(name, tables)
      if (found.kind === 'found')
        shapes.set(name, rowShapeFromModel(name, found.model.shape, found.model.format))
    }
  for (const [name, shape] of listed) shapes.set(name, shape)
  return shapes
}

interface Predicted {
  readonly row: Row
  readonly prediction: {
    readonly tokensPerSecond: number
    readonly low: number
    readonly high: number
  }
}

function renderRows(predictions: readonly Predicted[]): string {
  const rows = predictions.map(({ row, prediction }) => [
    `${row.phase} ${row.shape.model}`,
    row.hardware.join('+'),
    `${row.machines} ${row.strategy.kind}`,
    row.transport,
    String(row.contextTokens),
    figure(prediction.tokensPerSecond),
    `${figure(prediction.low)}–${figure(prediction.high)}`,
    row.measured === null ? '' : figure(row.measured),
    row.measured === null ? '' : percent(prediction.tokensPerSecond / row.measured - 1),
  ])
  const parts = [
    table(
      [
        'row',
        'hardware',
        'strategy',
        'transport',
        'context',
        'predicted',
        'range',
        'measured',
        'error',
      ],
      rows,
    ),
  ]
  for (const phase of ['decode', 'prefill'] as const) {
    const errors = predictions.flatMap(({ row, prediction }) =>
      row.phase === phase && row.measured !== null
        ? [Math.abs(prediction.tokensPerSecond / row.measured - 1)]
        : [],
    )
    if (errors.length > 0)
      parts.push(
        `${phase}: median error ${(medianOf(errors) * 100).toFixed(1)}% over ${errors.length} rows`,
      )
  }
  return parts.join('\n\n')
}
