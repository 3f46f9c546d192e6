// bushel links: what lies between this machine and the others, as measured.
import type { Command } from 'commander'
import { z } from 'zod'
import { type ClusterView, clusterView } from '../../wire/cluster-view.ts'
import { type LinkMeasurement, type LinkView, linkView } from '../../wire/link-measurement.ts'
import { causeBetween, formatGbps } from '../../core/links/link-fact.ts'
import { type CliContext, UserError, exitCodes } from '../command.ts'
import { formatDuration } from '../../core/units.ts'
import { requireDaemon } from '../daemon-client.ts'
import { homeDir } from '../settings.ts'
import { table } from '../table.ts'

interface Options {
  readonly measure?: boolean
  readonly seconds: string
  readonly json?: boolean
}

/** Three transfers in each direction of every link. */
const transfers = 6

export function register(command: Command, context: CliContext): void {
  command
    .argument('[machine]', 'only the links to this one')
    .option('--measure', 'send over each link and count what arrives')
    .option('--seconds <n>', 'how long per link, with --measure', '2.4')
    .action(async (machine: string | undefined, options: Options) => {
      const daemon = requireDaemon(homeDir(context.env))
      const milliseconds = Math.round((Number(options.seconds) * 1000) / transfers)
      if (!(milliseconds >= 50 && milliseconds <= 10_000))
        throw new UserError(`--seconds takes a number from 0.3 to 60, not "${options.seconds}"`, {
          exitCode: exitCodes.usage,
        })
      const { machines } = clusterView.parse(await daemon.get('/cluster/view'))
      const peer = machine === undefined ? undefined : peerNamed(machines, machine)
      const all = z
        .array(linkView)
        .parse(
          options.measure === true
            ? await daemon.post('/cluster/links/measure', { milliseconds, to: peer?.id ?? null })
            : await daemon.get('/cluster/links'),
        )
      const links = all.filter((link) => peer === undefined || link.peer === peer.id)
      if (options.json === true) {
        context.out.json(links)
        return
      }
      if (links.length === 0) {
        context.out.result('No other machine is connected; "bushel invite" lets one in.')
        return
      }
      const nameOf = ({ peer }: LinkView): string =>
        machines.find((machine) => machine.id === peer)?.name ?? peer.slice(0, 8)
      const head = [
        'MACHINE',
        'LINK',
        'ADDRESS',
        'ROUND TRIP',
        'LOSS',
        'MEASURED',
        'NOMINAL',
        'STATE',
      ]
      context.out.result(
        table(
          head,
          links.map((link) => rowOf(link, nameOf(link))),
        ),
      )
      for (const link of links)
        if (link.measured?.slow === true)
          context.out.result(slowText(link.measured, link.link, nameOf(link)))
    })
}

function slowText(measured: LinkMeasurement, link: string, to: string): string {
  const { gbps, expectedGbps, likelyCause, next } = measured
  const cause = causeBetween(likelyCause ?? 'the link itself', { from: 'here', to })
  return `${to} over ${link} is slow: ${rate(gbps?.slower)} where ${rate(expectedGbps)} could be expected; likely ${cause}: ${next ?? 'look at both ends of it'}`
}

function peerNamed(machines: ClusterView['machines'], name: string): { id: string } {
  const found = machines.find((machine) => machine.name === name || machine.id === name)
  if (found !== undefined) return found
  const names = machines.map((machine) => machine.name).join(', ')
  throw new UserError(`There is no machine "${name}" in this cluster; there are: ${names}`)
}

function rowOf(link: LinkView, name: string): string[] {
  const { measured, loss } = link
  const trip =
    measured?.roundTripMicros != null ? measured.roundTripMicros.median / 1000 : link.roundTripMs
  return [
    name,
    link.link,
    link.remoteAddress,
    trip === null ? 'not yet' : `${trip.toFixed(2)} ms`,
    loss === null ? 'not yet' : `${(loss * 100).toFixed(0)}%`,
    measuredOf(measured),
    measured?.nominalGbps == null ? 'not known' : rate(measured.nominalGbps),
    link.heardAgoMs < 1500 ? 'up' : `silent for ${(link.heardAgoMs / 1000).toFixed(1)} s`,
  ]
}

/** Never an old figure as a new one. */
function measuredOf(measured: LinkView['measured']): string {
  if (measured === null) return 'not yet'
  if (measured.error !== null) return `failed: ${measured.error}`
  if (measured.gbps === null) return 'too few samples'
  const age = measured.ageMs > 60_000 ? `, ${formatDuration(measured.ageMs)} ago` : ''
  return `${rate(measured.gbps.slower)}${measured.slow ? ' SLOW' : ''}${age}`
}

const rate = (gbps: number | null | undefined): string =>
  gbps == null ? 'not known' : formatGbps(gbps)
