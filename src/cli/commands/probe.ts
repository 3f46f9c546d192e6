// bushel probe: measures what the planner otherwise takes from tables, on the machines and links at hand.
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import type { Command } from 'commander'
import type { ProbeNews } from '../../wire/probe-job.ts'
import { type CliContext, UserError } from '../command.ts'
import { type DaemonClient, requireDaemon } from '../daemon-client.ts'
import type { ProbeReport } from '../daemon/probe-exchange.ts'
import { table } from '../plan/text.ts'
import { homeDir } from '../settings.ts'

export function register(command: Command, context: CliContext): void {
  command.option('--links', 'what lies between machines only: after a cable was moved')
  command.action(async (options: { json?: boolean; links?: boolean }) => {
    const daemon = requireDaemon(homeDir(context.env))
    const linksOnly = options.links === true
    context.out.note(
      linksOnly
        ? 'Measuring every link …'
        : 'Measuring every machine and link; about half a minute for each machine …',
    )
    const report = await measured(daemon, linksOnly, (what) => context.out.note(`  ${what}`))
    for (const problem of report.problems) context.out.note(`Not measured: ${problem}`)
    if (options.json === true) context.out.json(report)
    else context.out.result(renderProbe(report))
  })
}

async function measured(
  daemon: DaemonClient,
  linksOnly: boolean,
  progress: (what: string) => void,
): Promise<ProbeReport> {
  const body = JSON.stringify({ linksOnly })
  const response = await daemon.request('/cluster/probe', { method: 'POST', body })
  if (response.ok && response.body !== null)
    for await (const line of createInterface({ input: Readable.fromWeb(response.body) })) {
      const news = JSON.parse(line) as ProbeNews<ProbeReport>
      if (news.kind === 'report') return news.report
      if (news.kind === 'failed') throw new UserError(`The probe failed: ${news.reason}`)
      progress(news.text)
    }
  throw new UserError('The probe ended without a report; the log is shown by "bushel logs"')
}

export function renderProbe({ measured, names }: ProbeReport): string {
  const name = (id: string): string => names[id] ?? id.slice(0, 8)
  const spread = (part: number): string => `±${(part * 100).toFixed(0)}%`
  const micro = (seconds: number): string => `${(seconds * 1e6).toFixed(0)} µs`
  const parts: string[] = []
  if (measured.machines.length > 0)
    parts.push(
      table(
        ['machine', 'memory', 'per kernel', 'prefill', 'spread'],
        measured.machines.map(({ machine, value, spread: part }) => [
          name(machine),
          `${(value.memoryBytesPerSecond / 1e9).toFixed(1)} GB/s`,
          micro(value.kernelSeconds),
          `${(value.matmulFlops / 1e9).toFixed(0)} GFLOPS`,
          spread(part),
        ]),
      ),
    )
  if (measured.hops.length > 0)
    parts.push(
      table(
        ['hop', 'time', 'spread'],
        measured.hops.map(({ source, target, value, spread: part }) => [
          `${name(source)} → ${name(target)}`,
          micro(value.hopSeconds),
          spread(part),
        ]),
      ),
    )
  if (measured.worlds.length > 0)
    parts.push(
      table(
        ['all-reduce', 'small', '1 MiB', 'spread'],
        measured.worlds.map(({ machines, backend, value, spread: part }) => [
          `${machines.map(name).join(' + ')} (${backend})`,
          micro(value.smallSeconds),
          micro(value.mebibyteSeconds),
          spread(part),
        ]),
      ),
    )
  parts.push('"bushel plan" uses these until the system, MLX or a cable changes.')
  return parts.join('\n\n')
}
