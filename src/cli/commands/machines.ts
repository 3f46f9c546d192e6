// bushel machines: who is in the cluster, who is nearby, and taking one out.
import type { Command } from 'commander'
import { formatBytes, formatDuration } from '../../core/units.ts'
import { type MachineView, clusterView } from '../../wire/cluster-view.ts'
import type { CliContext } from '../command.ts'
import { requireDaemon } from '../daemon-client.ts'
import { homeDir } from '../settings.ts'
import { table } from '../table.ts'

export function register(command: Command, context: CliContext): void {
  command.action(async (options: { json?: boolean }) => {
    const daemon = requireDaemon(homeDir(context.env))
    const view = clusterView.parse(await daemon.get('/cluster/view'))
    if (options.json === true) {
      context.out.json(view.machines)
      return
    }
    context.out.result(render(view.machines, view.coordinator))
    for (const { name, refuses } of view.machines)
      if (refuses !== null) context.out.result(`${name} takes no new work: ${refuses}`)
    const { nearby, asking } = (await daemon.get('/cluster/nearby')) as Nearby
    for (const other of asking) {
      context.out.result(
        `asking   ${other.name}  words: ${other.words}  → bushel approve ${other.name}`,
      )
    }
    for (const other of nearby)
      context.out.result(`nearby   ${other.name}  at ${other.host} (not in the cluster)`)
  })
  command
    .command('remove <name>')
    .description('shut a machine out; it comes back only by a new invitation')
    .option('--json', 'print one JSON document on stdout')
    .action(async (name: string, options: { json?: boolean }) => {
      const removed = (await requireDaemon(homeDir(context.env)).post('/cluster/remove', {
        name,
      })) as { name: string }
      if (options.json === true) context.out.json(removed)
      else context.out.result(`${removed.name} was removed from the cluster.`)
    })
}

interface Nearby {
  readonly nearby: readonly { name: string; host: string }[]
  readonly asking: readonly { name: string; words: string }[]
}

function render(machines: readonly MachineView[], coordinator: string | null): string {
  const rows = machines.map((machine) => [
    machine.name,
    machine.state === 'alive'
      ? 'alive'
      : `${machine.state} for ${formatDuration(machine.heardAgoMs)}`,
    `${machine.role ?? 'unknown'}${machine.id === coordinator ? ', coordinates' : ''}`,
    machine.memoryLendBytes === null
      ? 'unknown'
      : `${formatBytes(machine.memoryReservedBytes ?? 0)} of ${formatBytes(machine.memoryLendBytes)}`,
    machine.links.map(({ link }) => link).join(', '),
    machine.id.slice(0, 8),
  ])
  return table(['MACHINE', 'STATE', 'ROLE', 'MEMORY LENT', 'LINKS', 'ID'], rows)
}
