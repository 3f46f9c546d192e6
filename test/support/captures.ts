// Where tests find what real machines printed, and how captures are fed to a prober.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLinuxProber } from '../../src/adapters/probers/linux/linux-prober.ts'
import {
  type CapturedMachine,
  readCaptureFolder,
  readCaptureFolders,
} from '../../src/adapters/probers/access/capture-folder.ts'
import { replay } from '../../src/adapters/probers/access/recording.ts'
import { createMacProber } from '../../src/adapters/probers/mac/mac-prober.ts'
import type { MachineFacts } from '../../src/core/machine-facts/machine.ts'
import type { Prober } from '../../src/ports/prober.ts'

const root = join(import.meta.dirname, '..', 'fixtures', 'machines')

/** One output of one tool. */
export function toolCapture(name: string): string {
  return readFileSync(join(root, 'tools', name), 'utf8')
}

export function captureFolder(name: string): string {
  return join(root, name)
}

export function proberOf(machine: CapturedMachine): Prober {
  const components = {
    name: machine.name,
    access: replay(machine.recording),
    nowMs: () => machine.description.observedAtMs ?? 0,
    self: machine.description.self ?? null,
    runtimePython: 'python',
  }
  return machine.platform === 'macos'
    ? createMacProber(components)
    : createLinuxProber({ ...components, linkSettings: {} })
}

export async function probeAll(
  machines: readonly CapturedMachine[],
): Promise<readonly MachineFacts[]> {
  return Promise.all(machines.map((machine) => proberOf(machine).probeMachine()))
}

/** The facts of every machine in a folder, by the name of its subfolder. */
export async function factsOf(name: string): Promise<Record<string, MachineFacts>> {
  const machines = await readCaptureFolders(captureFolder(name))
  const facts = await probeAll(machines)
  return Object.fromEntries(facts.map((one) => [one.name, one]))
}

export async function capturedMachine(name: string): Promise<CapturedMachine> {
  return readCaptureFolder(captureFolder(name))
}

/** The same machine with further or other outputs, by capture name. */
export function withOutputs(
  machine: CapturedMachine,
  outputs: Readonly<Record<string, string>>,
): CapturedMachine {
  const commands = new Map(machine.recording.commands)
  for (const [name, stdout] of Object.entries(outputs))
    commands.set(name, {
      argv: [name],
      outcome: { kind: 'exited', exitCode: 0, stdout, stderr: '' },
    })
  return { ...machine, recording: { ...machine.recording, commands } }
}
