// The two Macs on which ailments are tried, and the outputs that the ailments change.
import { captureName } from '../../src/adapters/probers/access/recording.ts'
import { runtimeCommand } from '../../src/adapters/probers/runtime-versions.ts'
import type { Diagnosis } from '../../src/core/doctor/run-doctor.ts'
import type { CommandOutcome } from '../../src/ports/machine-access.ts'
import { diagnoseMachines } from './diagnosis.ts'
import { type Changes, type ScriptedCluster, scriptCluster } from './scripted-macs.ts'

/** studio port 3 (en4, 192.168.0.1) to book port 2 (en12, 192.168.0.2). */
export const healthyPair: ScriptedCluster = {
  macs: [
    { name: 'studio', modelName: 'Mac Studio', chip: 'Apple M3 Ultra', ports: 6 },
    {
      name: 'book',
      modelName: 'MacBook Pro',
      model: 'Mac16,5',
      chip: 'Apple M4 Max',
      firstInterface: 11,
    },
  ],
  cables: [{ ends: ['studio:3', 'book:2'] }],
}

export const thunderboltCapture = 'system_profiler_SPThunderboltDataType_-json'
export const versionsCapture: string = captureName(runtimeCommand('python'))
export const noDevices =
  '    device          \t   node GUID\n    ------          \t----------------\n'

export const failing = (stderr: string): CommandOutcome => ({
  kind: 'exited',
  exitCode: 1,
  stdout: '',
  stderr,
})

export async function withSickness(
  changes: Readonly<Record<string, Changes>>,
  cluster: ScriptedCluster = healthyPair,
): Promise<Diagnosis> {
  return diagnoseMachines(scriptCluster(cluster, changes))
}
