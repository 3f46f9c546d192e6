// GPUs behind the NVIDIA driver. No driver is an answer ("no GPU of that kind"), a hanging one is a finding.
import { type Fact, chainFact, known, mapFact, unknown } from '../../../core/machine-facts/fact.ts'
import { probeLimits } from '../../../core/machine-facts/limits.ts'
import type { GpuFacts } from '../../../core/machine-facts/machine.ts'
import { MiB } from '../../../core/units.ts'
import type { RunCommand } from '../../../ports/machine-access.ts'
import { textOf } from '../outcome.ts'
import { type GpuRow, gpuNumber, gpuText, parseGpuRows } from './nvidia-smi.ts'

export const gpuFields = [
  'index',
  'name',
  'memory.total',
  'memory.free',
  'compute_cap',
  'driver_version',
] as const

export const gpuQuery = [
  'nvidia-smi',
  `--query-gpu=${gpuFields.join(',')}`,
  '--format=csv,noheader,nounits',
] as const

export async function probeGpus(runCommand: RunCommand): Promise<Fact<readonly GpuFacts[]>> {
  const outcome = await runCommand(gpuQuery, { timeoutMs: probeLimits.commandTimeoutMs })
  if (outcome.kind === 'missing') return known([])
  return chainFact(textOf('nvidia-smi', outcome), parseGpus)
}

export function parseGpus(text: string): Fact<readonly GpuFacts[]> {
  return mapFact(parseGpuRows(text, gpuFields), (rows) => rows.map(gpuOf))
}

function gpuOf(row: GpuRow, position: number): GpuFacts {
  const memoryTotal = bytesOf(row, 'memory.total')
  const index = gpuNumber(row, 'index')
  return {
    index: index.known ? index.value : position,
    name: row.get('name') ?? '',
    memoryTotalBytes: memoryTotal,
    memoryFreeBytes: bytesOf(row, 'memory.free'),
    // A driver that names the chip but no memory of its own shares the system's.
    unifiedMemory: row.has('memory.total') && !memoryTotal.known,
    computeCapability: gpuText(row, 'compute_cap'),
    driver: gpuText(row, 'driver_version'),
  }
}

function bytesOf(row: GpuRow, field: string): Fact<number> {
  const megabytes = gpuNumber(row, field)
  if (megabytes.known) return known(megabytes.value * MiB)
  return unknown(megabytes.why.kind, megabytes.why.detail)
}
