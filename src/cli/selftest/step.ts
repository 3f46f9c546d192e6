// One step of the self-test: something that ran, was skipped with a reason, or failed with one.
import type { MachineFacts } from '../../core/machine-facts/machine.ts'
import type { MachineAccess } from '../../ports/machine-access.ts'
import type { StepOutcome } from '../../wire/selftest-bundle.ts'
import type { CliContext } from '../command.ts'

export interface SelftestStep {
  readonly id: string
  readonly title: string
  readonly run: (bench: SelftestBench) => Promise<StepOutcome>
}

export interface SelftestBench {
  readonly context: CliContext
  /** Everything asked through this access goes into the bundle. */
  readonly access: MachineAccess
  readonly label: string
  readonly facts: MachineFacts
  readonly nowMs: () => number
  readonly useMacmon: boolean
}

export const skipped = (reason: string): StepOutcome => ({ kind: 'skipped', reason })
