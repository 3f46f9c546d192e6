// Predictions kept and compared with what then happened. The daemon writes one line per group when it
// starts and one when it has been measured; scoring joins them.
import type { GroupId } from '../../ids.ts'
import { medianOf } from '../probe/measured.ts'
import type { Range } from '../types.ts'

export interface PredictionRecord {
  readonly kind: 'prediction'
  readonly atMs: number
  readonly group: GroupId
  readonly model: string
  readonly strategy: string
  readonly machines: number
  readonly restsOn: string
  readonly tokensPerSecond: Range
  readonly firstTokenSeconds: Range
}

export interface MeasurementRecord {
  readonly kind: 'measurement'
  readonly atMs: number
  readonly group: GroupId
  /** Steady decode of one request alone, and time to first token, medians over this many requests. */
  readonly tokensPerSecond: number
  readonly firstTokenSeconds: number | null
  readonly requests: number
}

export type ScoreRecord = PredictionRecord | MeasurementRecord

export interface ScoreLine {
  readonly prediction: PredictionRecord
  readonly measured: MeasurementRecord | null
  /** Predicted over measured, less one. */
  readonly rateError: number | null
  readonly firstTokenError: number | null
  readonly insideRange: boolean | null
}

export interface Score {
  readonly lines: readonly ScoreLine[]
  readonly medianRateError: number | null
  readonly medianFirstTokenError: number | null
  readonly insideRangeShare: number | null
}

const median = (values: readonly number[]): number | null =>
  values.length === 0 ? null : medianOf(values)

/** Joins each group's prediction with its latest measurement. Nothing is dropped. */
export function scorePredictions(records: readonly ScoreRecord[]): Score {
  const measurements = new Map<GroupId, MeasurementRecord>()
  for (const record of records) {
    if (record.kind !== 'measurement') continue
    const known = measurements.get(record.group)
    if (known === undefined || record.atMs >= known.atMs) measurements.set(record.group, record)
  }
  const lines = records.flatMap((record): ScoreLine[] => {
    if (record.kind !== 'prediction') return []
    const measured = measurements.get(record.group) ?? null
    if (measured === null)
      return [
        { prediction: record, measured, rateError: null, firstTokenError: null, insideRange: null },
      ]
    const { low, high } = record.tokensPerSecond
    return [
      {
        prediction: record,
        measured,
        rateError: record.tokensPerSecond.value / measured.tokensPerSecond - 1,
        firstTokenError:
          measured.firstTokenSeconds === null
            ? null
            : record.firstTokenSeconds.value / measured.firstTokenSeconds - 1,
        insideRange: measured.tokensPerSecond >= low && measured.tokensPerSecond <= high,
      },
    ]
  })
  const known = lines.flatMap((line) => (line.insideRange === null ? [] : [line.insideRange]))
  return {
    lines,
    medianRateError: median(
      lines.flatMap((line) => (line.rateError === null ? [] : [Math.abs(line.rateError)])),
    ),
    medianFirstTokenError: median(
      lines.flatMap((line) =>
        line.firstTokenError === null ? [] : [Math.abs(line.firstTokenError)],
      ),
    ),
    insideRangeShare: known.length === 0 ? null : known.filter(Boolean).length / known.length,
  }
}
