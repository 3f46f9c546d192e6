// bushel status: one look at everything.
import type { Command } from 'commander'
import { formatBytes } from '../../core/units.ts'
import { clusterView } from '../../wire/cluster-view.ts'
import { type CliContext, exitCodes } from '../command.ts'
import { findDaemon } from '../daemon-client.ts'
import { slowLines } from '../slow-machines.ts'
import { homeDir } from '../settings.ts'

export function register(command: Command, context: CliContext): void {
  command.action(async (options: { json?: boolean }) => {
    const daemon = findDaemon(homeDir(context.env))
    if (daemon === null) {
      if (options.json === true) context.out.json({ running: false })
      else context.out.result('No daemon is running; start one with "bushel up".')
      process.exitCode = exitCodes.daemonMissing
      return
    }
    const view = clusterView.parse(await daemon.get('/cluster/view'))
    if (options.json === true) {
      context.out.json({ running: true, pid: daemon.pid, url: daemon.url, ...view })
      return
    }
    const lines = [`daemon   pid ${daemon.pid} at ${daemon.url}, since ${daemon.startedAt}`]
    for (const machine of view.machines) {
      const memory = `${formatBytes(machine.memoryReservedBytes ?? 0)} of ${formatBytes(machine.memoryLendBytes ?? 0)} lent in use`
      const mark = machine.id === view.coordinator ? ', coordinates' : ''
      lines.push(`machine  ${machine.name} ${machine.state}${mark}, ${memory}`)
    }
    for (const deployment of view.deployments) {
      lines.push(
        `model    ${deployment.model} ${deployment.status}${deployment.detail === '' ? '' : ` (${deployment.detail})`}`,
      )
    }
    for (const line of slowLines(view.slow)) lines.push(`slow     ${line}`)
    context.out.result(lines.join('\n'))
  })
}
