// Finding machines. A sighting is a hint where to dial; it is never trust.
import type { MachineId } from '../core/ids.ts'

export interface Sighting {
  readonly machine: MachineId
  readonly name: string
  readonly version: string
  /** With its zone where the address is link-local. */
  readonly host: string
  readonly port: number
  readonly link: string
}

export interface Discovery {
  start(found: (sighting: Sighting) => void): void
  /** Says goodbye, so that others need not wait for a timeout. */
  stop(): void
}
