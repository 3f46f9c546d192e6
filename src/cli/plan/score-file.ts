// Reads the predictions that were kept and tells how they fared. Lines that are not whole (a crash
// while writing) are counted and named, never silently skipped.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { groupId } from '../../core/ids.ts'
import { type Score, type ScoreRecord, scorePredictions } from '../../core/plan/score/records.ts'
import { scoreRecord } from '../../wire/plan-data.ts'
import { UserError } from '../command.ts'
import { figure, percent, table } from './text.ts'

export interface ScoreReport extends Score {
  readonly file: string
  readonly unreadableLines: readonly number[]
}

export const predictionFile = (home: string): string => join(home, 'predictions.jsonl')

export function readScore(home: string): ScoreReport {
  const file = predictionFile(home)
  if (!existsSync(file))
    throw new UserError(
      `no predictions are kept yet (${file} is not there); they are written when a group has run`,
    )
  const records: ScoreRecord[] = []
  const unreadableLines: number[] = []
  for (const [index, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    if (line.trim() === '') continue
    const record = readLine(line)
    if (record === null) unreadableLines.push(index + 1)
    else records.push(record)
  }
  return { ...scorePredictions(records), file, unreadableLines }
}

function readLine(line: string): ScoreRecord | null {
  try {
    const parsed = scoreRecord.safeParse(JSON.parse(line))
    return parsed.success ? { ...parsed.data, group: groupId(parsed.data.group) } : null
  } catch {
    return null
  }
}

export function renderScore(score: ScoreReport): string {
  const rows = score.lines.map((line) => {
    const { prediction, measured } = line
    return [
      prediction.group,
      prediction.model,
      prediction.strategy,
      String(prediction.machines),
      figure(prediction.tokensPerSecond.value),
      measured === null ? 'not measured' : figure(measured.tokensPerSecond),
      line.rateError === null ? '' : percent(line.rateError),
      line.insideRange === null ? '' : line.insideRange ? 'inside' : 'outside',
      line.firstTokenError === null ? '' : percent(line.firstTokenError),
    ]
  })
  const parts = [
    table(
      [
        'group',
        'model',
        'strategy',
        'machines',
        'predicted',
        'measured',
        'error',
        'range',
        'first token',
      ],
      rows,
    ),
  ]
  if (score.medianRateError !== null)
    parts.push(
      `median error ${(score.medianRateError * 100).toFixed(1)}%, ${((score.insideRangeShare ?? 0) * 100).toFixed(0)}% inside their range`,
    )
  if (score.medianFirstTokenError !== null)
    parts.push(`first token: median error ${(score.medianFirstTokenError * 100).toFixed(1)}%`)
  if (score.unreadableLines.length > 0)
    parts.push(`lines that could not be read: ${score.unreadableLines.join(', ')}`)
  return parts.join('\n\n')
}
