// bushel explain: what became of an answer, and why there was a pause.
import type { Command } from 'commander'
import { z } from 'zod'
import { explainCause } from '../../core/doctor/rank-log.ts'
import { formatDuration } from '../../core/units.ts'
import type { CliContext } from '../command.ts'
import { requireDaemon } from '../daemon-client.ts'
import { homeDir } from '../settings.ts'
import { table } from '../table.ts'

const place = z.object({ group: z.string(), machine: z.string() })
const reportSchema = z.object({
  id: z.string(),
  label: z.string().nullable(),
  deployment: z.string(),
  startedMs: z.number(),
  endedMs: z.number().nullable(),
  outcome: z.string().nullable(),
  tokens: z.number(),
  attempts: z.array(
    place.extend({
      tokensAtStart: z.number(),
      tokensAtEnd: z.number(),
      cause: z.string(),
    }),
  ),
  gaps: z.array(
    z.object({
      atToken: z.number(),
      cause: z.string(),
      noticedMs: z.number(),
      waitedMs: z.number(),
      reworkedMs: z.number(),
      from: place,
      to: place,
    }),
  ),
  exact: z.boolean(),
})
type Report = z.infer<typeof reportSchema>

export function register(command: Command, context: CliContext): void {
  command
    .argument('[answer]', "an answer's id as the client got it; without one, the last answers")
    .action(async (answer: string | undefined, options: { json?: boolean }) => {
      const daemon = requireDaemon(homeDir(context.env))
      if (answer === undefined) {
        const all = z.array(reportSchema).parse(await daemon.get('/cluster/generations'))
        if (options.json === true) context.out.json(all)
        else context.out.result(overview(all))
        return
      }
      const path = `/cluster/generations/${encodeURIComponent(answer)}`
      const report = reportSchema.parse(await daemon.get(path))
      if (options.json === true) context.out.json(report)
      else context.out.result(explained(report))
    })
}

function overview(reports: readonly Report[]): string {
  if (reports.length === 0) return 'No answer has gone through this machine since it was started.'
  const rows = reports
    .slice(0, 20)
    .map((report) => [
      report.label ?? report.id,
      report.deployment,
      report.outcome ?? 'going on',
      String(report.tokens),
      report.gaps.length === 0 ? '' : `${report.gaps.length} (${pause(report)} in all)`,
      `${formatDuration(report.startedMs)} ago`,
    ])
  return table(['ANSWER', 'MODEL', 'END', 'TOKENS', 'PAUSES', 'ASKED'], rows)
}

function explained(report: Report): string {
  const lines = [
    `${report.label ?? report.id} (${report.id}) of ${report.deployment}: ${report.outcome ?? 'going on'}, ${report.tokens} tokens, asked ${formatDuration(report.startedMs)} ago`,
  ]
  for (const [index, attempt] of report.attempts.entries()) {
    const tokens = `tokens ${attempt.tokensAtStart}–${attempt.tokensAtEnd}`
    const end = attempt.cause === '' ? '' : `; lost: ${explainCause(attempt.cause)}`
    lines.push(`  attempt ${index + 1} on ${attempt.machine} (${attempt.group}): ${tokens}${end}`)
  }
  for (const gap of report.gaps) {
    const total = gap.noticedMs + gap.waitedMs + gap.reworkedMs
    lines.push(
      `  pause of ${seconds(total)} after token ${gap.atToken}: ${seconds(gap.noticedMs)} until it was noticed, ${seconds(gap.waitedMs)} until ${gap.to.machine} could take over, ${seconds(gap.reworkedMs)} until the next token`,
    )
    lines.push(`    because ${explainCause(gap.cause)}`)
  }
  if (report.gaps.length === 0 && report.attempts.length <= 1) lines.push('  no pause')
  else
    lines.push(
      report.exact
        ? '  what followed is what an unbroken run would have said'
        : '  what followed may differ in a word from an unbroken run: it was computed by other hardware or shared out otherwise',
    )
  return lines.join('\n')
}

function pause({ gaps }: Report): string {
  return seconds(gaps.reduce((sum, gap) => sum + gap.noticedMs + gap.waitedMs + gap.reworkedMs, 0))
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 0)} s`
}
