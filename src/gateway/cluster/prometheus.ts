// Counters in the text format that monitors read.
import type { ServingCounters } from '../../runtime/generation-log.ts'

export function prometheusText(counters: ServingCounters, live: number): string {
  const lines: string[] = []
  const metric = (about: { name: string; type: 'counter' | 'gauge'; help: string }): string => {
    lines.push(`# HELP bushel_${about.name} ${about.help}`)
    lines.push(`# TYPE bushel_${about.name} ${about.type}`)
    return `bushel_${about.name}`
  }
  const labelled = (
    name: string,
    label: string,
    counts: Readonly<Record<string, number>>,
  ): void => {
    for (const [key, value] of Object.entries(counts))
      lines.push(`${name}{${label}="${key.replaceAll(/["\\\n]/g, '_')}"} ${value}`)
  }
  const running = metric({ name: 'answers_live', type: 'gauge', help: 'Answers under way.' })
  lines.push(`${running} ${live}`)
  const answers = metric({ name: 'answers_total', type: 'counter', help: 'Answers by their end.' })
  labelled(answers, 'end', {
    finished: counters.finished,
    'client-gone': counters.gone,
    ...counters.failed,
  })
  const tokens = metric({ name: 'tokens_total', type: 'counter', help: 'Tokens sent to clients.' })
  lines.push(`${tokens} ${counters.tokens}`)
  const resumes = metric({
    name: 'resumes_total',
    type: 'counter',
    help: 'Answers that went on after a loss.',
  })
  labelled(resumes, 'exact', {
    yes: counters.resumes - counters.resumesInexact,
    unsure: counters.resumesInexact,
  })
  const lost = metric({
    name: 'resume_pause_seconds_total',
    type: 'counter',
    help: 'Time that readers waited because of losses.',
  })
  lines.push(`${lost} ${counters.lostMs / 1000}`)
  const losses = metric({
    name: 'attempts_lost_total',
    type: 'counter',
    help: 'Attempts that were lost, by what was lost.',
  })
  labelled(losses, 'cause', counters.losses)
  return `${lines.join('\n')}\n`
}
