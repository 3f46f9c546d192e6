// The running cluster's facts: everybody's, collected by the daemon on this machine. Null while none runs.
import type { CliContext } from '../command.ts'
import type { ClusterFacts } from '../daemon/facts-exchange.ts'
import { findDaemon } from '../daemon-client.ts'
import { homeDir } from '../settings.ts'
import type { CollectedFacts } from './facts-source.ts'

export async function askCluster(context: CliContext): Promise<CollectedFacts | null> {
  const daemon = findDaemon(homeDir(context.env))
  if (daemon === null) return null
  const facts = (await daemon.get('/cluster/facts')) as ClusterFacts
  const { machines, paths, links, local, silent, away } = facts
  for (const { name, reason } of [...silent, ...away])
    context.out.note(`${name} could not be asked: ${reason}`)
  return { machines, paths, links, local }
}
