// bushel probe: measures what the planner otherwise takes from tables, on the machines and links at hand.
import type { Command } from 'commander'
import type { CliContext } from '../command.ts'
import { requireDaemon } from '../daemon-client.ts'
import type { ProbeReport } from '../daemon/probe-exchange.ts'
import { table } from '../plan/text.ts'
import { homeDir } from '../settings.ts'

export function register(command: Command, context: CliContext): void {
  command.action(async (options: { json?: boolean }) => {
    const daemon = requireDaemon(homeDir(context.env))
    context.out.note('Measuring every machine and link; it takes about half a minute for each …')
    const report = (await daemon.post('/cluster/probe', {})) as ProbeReport
    for (const problem of report.problems) context.out.note(`Not measured: ${problem}`)
    if (options.json === true) context.out.json(report)
    else context.out.result(renderProbe(report))
  })
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
