// One machine of the cluster view, in words.
import type { MachineView } from '../../../src/wire/cluster-view.ts'
import { assertNever } from '../assert-never.ts'
import { ageInWords, isOld } from './freshness.ts'
import type { Tone } from './model-state.ts'

export interface MachineLine {
  readonly tone: Tone
  readonly words: string
  /** Its figures are no longer the present. */
  readonly isOld: boolean
  /** What plans have set aside of what the machine lends; a reservation, not a reading of memory in use. */
  readonly reserved: { readonly bytes: number; readonly ofBytes: number } | null
}

export function machineLine(machine: MachineView, viewAgeMs: number): MachineLine {
  const heardAgoMs = machine.heardAgoMs + viewAgeMs
  const { memoryReservedBytes: bytes, memoryLendBytes: ofBytes } = machine
  const reserved = bytes === null || ofBytes === null || ofBytes <= 0 ? null : { bytes, ofBytes }
  const old = isOld(heardAgoMs) || machine.state === 'dead'
  const heard = `last heard ${ageInWords(heardAgoMs)}`
  switch (machine.state) {
    case 'alive':
      return { tone: 'good', words: old ? heard : 'up', isOld: old, reserved }
    case 'suspect':
      return { tone: 'busy', words: `silent, ${heard}`, isOld: old, reserved }
    case 'dead':
      return { tone: 'bad', words: `gone, ${heard}`, isOld: old, reserved: null }
    default:
      return assertNever(machine.state)
  }
}

export function formatBytes(bytes: number): string {
  const gigabytes = bytes / 1e9
  if (gigabytes >= 9.95) return `${Math.round(gigabytes)} GB`
  if (gigabytes >= 0.995) return `${gigabytes.toFixed(1)} GB`
  return bytes === 0 ? '0 GB' : `${Math.round(bytes / 1e6)} MB`
}
