// The seam to a running cluster: everybody's facts, collected by the daemon. Null while none is running.
import type { CliContext } from '../command.ts'
import type { CollectedFacts } from './facts-source.ts'

export async function askCluster(_context: CliContext): Promise<CollectedFacts | null> {
  return null
}
