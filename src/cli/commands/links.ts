// bushel links: what lies between this machine and the others, as measured.
import type { Command } from 'commander'
import { formatBytes } from '../../core/units.ts'
import { clusterView } from '../../wire/cluster-view.ts'
import type { CliContext } from '../command.ts'
import { requireDaemon } from '../daemon-client.ts'
import { homeDir } from '../settings.ts'
import { table } from '../table.ts'

interface LinkRow {
  readonly peer: string
  readonly link: string
  readonly localAddress: string
  readonly remoteAddress: string
  readonly heardAgoMs: number
  readonly roundTripMs: number | null
  readonly loss: number | null
  readonly bytesPerSecond?: number
  readonly error?: string
}

export function register(command: Command, context: CliContext): void {
  command
    .option('--measure', 'send over each link and count what arrives')
    .option('--seconds <n>', 'how long per link, with --measure', '1')
    .action(async (options: { measure?: boolean; seconds: string; json?: boolean }) => {
      const daemon = requireDaemon(homeDir(context.env))
      const milliseconds = Math.round(Number(options.seconds) * 1000)
      const links = (
        options.measure === true
          ? await daemon.post('/cluster/links/measure', { milliseconds })
          : await daemon.get('/cluster/links')
      ) as LinkRow[]
      if (options.json === true) {
        context.out.json(links)
        return
      }
      const { machines } = clusterView.parse(await daemon.get('/cluster/view'))
      const rows = links.map((link) => [
        machines.find((machine) => machine.id === link.peer)?.name ?? link.peer.slice(0, 8),
        link.link,
        link.remoteAddress,
        link.roundTripMs === null ? 'not yet' : `${link.roundTripMs.toFixed(2)} ms`,
        link.loss === null ? 'not yet' : `${(link.loss * 100).toFixed(0)}%`,
        link.error ??
          (link.bytesPerSecond === undefined ? '' : `${formatBytes(link.bytesPerSecond)}/s`),
        link.heardAgoMs < 1500 ? 'up' : `silent for ${(link.heardAgoMs / 1000).toFixed(1)} s`,
      ])
      context.out.result(
        table(['MACHINE', 'LINK', 'ADDRESS', 'ROUND TRIP', 'LOSS', 'RATE', 'STATE'], rows),
      )
    })
}
