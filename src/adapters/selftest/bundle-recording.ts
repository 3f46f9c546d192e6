// A machine of a bundle as a recording that a prober can be run on.
import { type Recording, captureName } from '../probers/access/recording.ts'
import type { CommandOutcome } from '../../ports/machine-access.ts'
import type { BundleMachine } from '../../wire/selftest-bundle.ts'

export function recordingOfBundle(machine: BundleMachine): Recording {
  return {
    commands: new Map(
      machine.commands.map(({ argv, stdout, outcome }) => {
        const whole: CommandOutcome = outcome.kind === 'exited' ? { ...outcome, stdout } : outcome
        return [captureName(argv), { argv, outcome: whole }]
      }),
    ),
    files: new Map(Object.entries(machine.files)),
    folders: new Map(Object.entries(machine.folders)),
    connections: new Map(Object.entries(machine.connections)),
    addresses: machine.addresses,
  }
}
