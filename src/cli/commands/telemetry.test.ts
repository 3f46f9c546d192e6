import assert from 'node:assert/strict'
import { test } from 'node:test'
import { known } from '../../core/machine-facts/fact.ts'
import { combineTelemetry } from '../../core/telemetry/telemetry.ts'
import { rowOf } from './telemetry.ts'

test('rowOf() shows what was told, with the age of what is old, and nothing that was not', () => {
  const reading = <T>(value: T, atMs: number) => known({ value, atMs, source: 'test' })
  const telemetry = combineTelemetry('studio', [
    {
      systemWatts: reading(93.26, 100_000),
      cpuLoad: reading(0.254, 40_000),
      thermalPressure: reading('heavy' as const, 100_000),
      memoryUsedBytes: reading(12e9, 100_000),
      memoryTotalBytes: reading(96e9, 100_000),
    },
  ])
  assert.deepEqual(rowOf({ telemetry, nowMs: 100_000, throttling: [] }), [
    'studio',
    '93.3 W',
    '–',
    '25% (1 min 0 s ago)',
    '–',
    '12.0 GB of 96.0 GB',
    'heavy',
  ])
})
