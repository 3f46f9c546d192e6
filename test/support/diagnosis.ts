// Facts and paths of captured machines, and what the doctor says about them.
import type { CapturedMachine } from '../../src/adapters/probers/access/capture-folder.ts'
import { type Diagnosis, diagnose, pathTargets } from '../../src/core/doctor/run-doctor.ts'
import { probeAll, proberOf } from './captures.ts'
import { peerPort } from './scripted-macs.ts'

export async function diagnoseMachines(machines: readonly CapturedMachine[]): Promise<Diagnosis> {
  const facts = await probeAll(machines)
  const targets = pathTargets(facts, peerPort)
  const paths = await Promise.all(
    machines.map((machine) => proberOf(machine).probePaths(targets.get(machine.name) ?? [])),
  )
  return diagnose({ machines: facts, paths: paths.flat(), links: [] })
}

/** "3 anna fail": what is not right, by number. */
export function troubles(diagnosis: Diagnosis): readonly string[] {
  return diagnosis.findings
    .filter((one) => one.level === 'fail' || one.level === 'warn' || one.level === 'unknown')
    .map((one) => `${one.number} ${one.machines.join('+')} ${one.level}`)
}
