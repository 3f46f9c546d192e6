// nvidia-smi captures read by hand, with GB10's "[N/A]".
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toolCapture } from '../../../../test/support/captures.ts'
import {
  assertCutsClaimNothingNew,
  assertGarbageIsSurvived,
} from '../../../../test/support/claims.ts'
import { known } from '../../../core/machine-facts/fact.ts'
import { gpuFields, parseGpus, probeGpus } from './nvidia-prober.ts'
import { type GpuRow, gpuNumber, gpuText, parseGpuRows } from './nvidia-smi.ts'

function onlyRow(text: string, fields: readonly string[] | 'header'): GpuRow {
  const rows = parseGpuRows(text, fields)
  assert.ok(rows.known && rows.value.length === 1 && rows.value[0] !== undefined)
  return rows.value[0]
}

test('parseGpuRows() reads a header with units', () => {
  const row = onlyRow(toolCapture('nvidia-smi-csv.rtx4090.txt'), 'header')
  assert.deepEqual(gpuText(row, 'name'), known('NVIDIA GeForce RTX 4090'))
  assert.deepEqual(gpuNumber(row, 'memory.total'), known(49_140))
  assert.deepEqual(gpuNumber(row, 'memory.used'), known(678))
  assert.deepEqual(gpuNumber(row, 'utilization.gpu'), known(0))
})

test('parseGpuRows() reads rows of the asked width alone', () => {
  const text = toolCapture('nvidia-smi-csv-noheader-nounits.gb10.txt')
  const fields = [
    'name',
    'a',
    'cap',
    'b',
    'c',
    'temperature',
    'power',
    'd',
    'e',
    'clock',
    'max',
    'f',
    'g',
    'h',
    'i',
  ]
  const row = onlyRow(text, fields)
  assert.deepEqual(gpuText(row, 'name'), known('NVIDIA GB10'))
  assert.equal(gpuNumber(row, 'a').known, false)
  assert.deepEqual(gpuNumber(row, 'temperature'), known(52))
  assert.deepEqual(gpuNumber(row, 'power'), known(10.8))
  assert.equal(parseGpuRows(text, ['name', 'power']).known, false)
})

test('parseGpus() takes "[N/A]" memory for memory shared with the system', () => {
  const gpus = parseGpus('0, NVIDIA GB10, [N/A], [N/A], 12.1, 580.126.09\n')
  assert.ok(gpus.known)
  const [gb10] = gpus.value
  assert.equal(gb10?.unifiedMemory, true)
  assert.equal(gb10?.memoryTotalBytes.known, false)
  assert.deepEqual(gb10?.driver, known('580.126.09'))
})

test('parseGpuRows() reads the driver of a GB10', () => {
  const row = onlyRow(toolCapture('nvidia-smi-csv-noheader.gb10-driver.txt'), [
    'name',
    'memory.total',
    'driver_version',
  ])
  assert.deepEqual(gpuText(row, 'driver_version'), known('580.126.09'))
  assert.equal(gpuText(row, 'memory.total').known, false)
})

test('parseGpuRows() refuses a header that its publisher shortened', () => {
  // Five columns with "..." above six values: which is which cannot be told.
  assert.equal(
    parseGpuRows(toolCapture('nvidia-smi-csv.gb10-unified-memory-na.txt'), 'header').known,
    false,
  )
})

test('parseGpuRows() reads every field of an H200', () => {
  const fields =
    'index,name,memory.total,memory.used,memory.free,utilization.gpu,temperature.gpu,power.draw,power.limit,clocks.current.sm,clocks.max.sm,compute_cap,driver_version,pstate,ecc.mode.current,persistence_mode'.split(
      ',',
    )
  const row = onlyRow(toolCapture('nvidia-smi-csv-noheader-nounits.h200.txt'), fields)
  assert.deepEqual(gpuNumber(row, 'power.draw'), known(126.11))
  assert.deepEqual(gpuNumber(row, 'temperature.gpu'), known(36))
  assert.deepEqual(gpuText(row, 'pstate'), known('P0'))
})

test('probeGpus() takes a missing tool for "no such GPU", and a hang for a finding', async () => {
  assert.deepEqual(await probeGpus(async () => ({ kind: 'missing' })), known([]))
  const hung = await probeGpus(async () => ({ kind: 'timed-out', afterMs: 10_000 }))
  assert.ok(!hung.known)
  assert.equal(hung.why.kind, 'timed-out')
  const stderr = toolCapture('nvidia-smi.unknown-field.h200.txt')
  const refused = await probeGpus(async () => ({
    kind: 'exited',
    exitCode: 2,
    stdout: stderr,
    stderr: '',
  }))
  assert.ok(!refused.known)
  assert.match(refused.why.detail, /not a valid field/)
})

test('parseGpus() claims nothing new from a listing cut short or damaged', () => {
  const text =
    '0, NVIDIA H200, 143771, 143156, 9.0, 580.159.04\n1, NVIDIA H200, 143771, 1000, 9.0, 580.159.04\n'
  assert.equal(gpuFields.length, 6)
  assertCutsClaimNothingNew(text, parseGpus)
  assertGarbageIsSurvived(text, parseGpus)
})
for (const name of ['nvidia-smi-csv.rtx4090.txt', 'nvidia-smi-csv.small-gpu-with-compute-apps.txt'])
  test(`parseGpuRows() claims nothing new from ${name} cut short or damaged`, () => {
    const parse = (text: string) => parseGpuRows(text, 'header')
    assertCutsClaimNothingNew(toolCapture(name), parse)
  })
