// Machines share no clock, so times in a record travel as ages and are put on the receiver's clock.
import type { MachineRecord } from '../cluster/record.ts'

/** The record with times as ages, for sending. */
export function withAges(record: MachineRecord, nowMs: number): MachineRecord {
  return mapTimes(record, (timeMs) => nowMs - timeMs)
}

/** A received record with its ages turned into times on our clock. */
export function withTimes(record: MachineRecord, nowMs: number): MachineRecord {
  return mapTimes(record, (ageMs) => nowMs - ageMs)
}

function mapTimes(record: MachineRecord, map: (ms: number) => number): MachineRecord {
  return {
    ...record,
    holdings: record.holdings.map((holding) => ({
      ...holding,
      sinceMs: map(holding.sinceMs),
      ...(holding.usedMs === undefined ? {} : { usedMs: map(holding.usedMs) }),
    })),
    failures: record.failures.map((failure) => ({ ...failure, atMs: map(failure.atMs) })),
  }
}
