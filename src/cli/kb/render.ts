// The knowledge base as text for people: one finding, a list of them, a topic, a conflict.
import type { AskAnswer } from '../../kb/ask.ts'
import { citationOf } from '../../kb/citations.ts'
import type {
  FindingDetail,
  KnowledgeStats,
  Neighbours,
  TopicDetail,
} from '../../kb/knowledge-base.ts'
import type { Conflict, Finding } from '../../kb/types.ts'

const width = 96

/** Breaks a text at spaces; lines that are lists or already broken stay on their own. */
export function wrap(text: string, indent = ''): string {
  return text
    .split('\n')
    .map((line) => wrapLine(line, indent))
    .join('\n')
}

function wrapLine(line: string, indent: string): string {
  const hanging = line.startsWith('- ') ? `${indent}  ` : indent
  const lines: string[] = []
  let current = indent
  for (const word of line.split(/ +/)) {
    const joined = current.trim() === '' ? current + word : `${current} ${word}`
    if (joined.length > width && current.trim() !== '') {
      lines.push(current)
      current = hanging + word
    } else current = joined
  }
  return [...lines, current].join('\n').trimEnd()
}

/** What to know about a finding before trusting it, in one line. */
function standing(finding: Pick<Finding, 'status' | 'confidence' | 'basis' | 'date'>): string {
  return `${finding.status} · ${finding.confidence} confidence · ${finding.basis} · ${finding.date}`
}

export function renderHit(finding: Finding): string {
  return [`${citationOf(finding.id)}  ${standing(finding)}`, wrap(finding.claim, '  ')].join('\n')
}

function renderLine(finding: Pick<Finding, 'id' | 'claim' | 'status'>): string {
  const status = finding.status === 'stands' ? '' : `[${finding.status}] `
  return wrap(`- ${citationOf(finding.id)} ${status}${finding.claim}`, '  ')
}

export function renderDetail(detail: FindingDetail): string {
  const { finding } = detail
  const optional = (title: string, text: string | undefined): string[] =>
    text === undefined ? [] : ['', title, wrap(text, '  ')]
  return [
    `${citationOf(finding.id)}  ${standing(finding)}`,
    wrap(finding.claim),
    ...optional('Evidence', finding.evidence),
    ...optional('Said earlier', finding.earlier),
    ...optional(
      finding.status === 'corrected' ? 'Why it was corrected' : 'What to mind',
      finding.correction,
    ),
    '',
    'Sources',
    ...finding.sources.map((source) => wrap(`- ${source}`, '  ')),
    ...relationLines(detail.relations, detail.relatedBy),
    ...detail.conflicts.flatMap((conflict) => ['', ...conflictLines(conflict)]),
    '',
    `Tags: ${finding.tags.join(', ')}`,
    `Topics: ${detail.topics.join(', ')}`,
    ...(finding.checked === undefined ? [] : [`Last checked: ${finding.checked}`]),
  ].join('\n')
}

function relationLines(forth: Neighbours, back: Neighbours): string[] {
  const seeAlso = [...forth.seeAlso, ...back.seeAlso]
  const contradicts = [...forth.contradicts, ...back.contradicts]
  const groups: [string, typeof seeAlso][] = [
    ['Supports', [...forth.supports]],
    ['Supported by', [...back.supports]],
    ['Contradicts', contradicts],
    ['Supersedes', [...forth.supersedes]],
    ['Superseded by', [...back.supersedes]],
    ['See also', seeAlso],
  ]
  return groups.flatMap(([title, others]) => {
    const once = [...new Map(others.map((other) => [other.id, other])).values()]
    return once.length === 0 ? [] : ['', title, ...once.map(renderLine)]
  })
}

export function renderConflict(conflict: Conflict): string {
  return conflictLines(conflict).join('\n')
}

function conflictLines(conflict: Conflict): string[] {
  return [
    `Conflict: ${conflict.title} (${conflict.name})`,
    wrap(`Use: ${conflict.use} (${conflict.stands.map(citationOf).join(', ')})`, '  '),
    ...conflict.claims.map(({ id, says }) => wrap(`- ${citationOf(id)} says ${says}`, '  ')),
    wrap(conflict.reason, '  '),
  ]
}

export function renderTopic({ topic, findings }: TopicDetail): string {
  const heading = (text: string): string[] => ['', text, '='.repeat(text.length)]
  return [
    topic.title,
    wrap(topic.summary),
    ...heading('What to know'),
    wrap(topic.know),
    ...heading('Figures'),
    ...topic.figures.map(({ what, value, cites }) =>
      wrap(`- ${what}: ${value} (${cites.map(citationOf).join(', ')})`),
    ),
    ...heading('Pitfalls'),
    ...topic.pitfalls.map((pitfall) => wrap(`- ${pitfall}`)),
    ...heading('Questions'),
    ...topic.questions.flatMap(({ question, answer }) => ['', question, wrap(answer, '  ')]),
    ...topic.more.flatMap(({ heading: name, text }) => [...heading(name), wrap(text)]),
    ...heading(`Findings (${findings.length})`),
    ...findings.map(renderLine),
    ...(topic.related.length === 0 ? [] : ['', `Related topics: ${topic.related.join(', ')}`]),
  ].join('\n')
}

export function renderStats(stats: KnowledgeStats): string {
  const counts = (title: string, values: Readonly<Record<string, number>>): string =>
    wrap(
      `${title}: ${Object.entries(values)
        .map(([name, count]) => `${name} ${count}`)
        .join(', ')}`,
    )
  return [
    `${stats.findings} findings, ${stats.conflicts} settled conflicts, ${stats.topics.length} topics`,
    counts('By status', stats.byStatus),
    counts('By confidence', stats.byConfidence),
    counts('Relations', stats.relations),
    counts(
      'By topic',
      Object.fromEntries(stats.topics.map(({ name, findings }) => [name, findings])),
    ),
    counts('By tag', stats.byTag),
    `Index: ${stats.index ?? 'in memory'} (files ${stats.digest.slice(0, 12)})`,
  ].join('\n')
}

export function renderAnswer(answer: AskAnswer): string {
  const { findings } = answer
  if (answer.kind === 'answered') {
    const cited = findings.filter((finding) => answer.cites.includes(finding.id))
    const origin = `Answered by ${answer.model} from these findings:`
    return [wrap(answer.answer), '', origin, ...cited.map(renderLine)].join('\n')
  }
  const shown = findings.map(renderHit).join('\n\n')
  if (answer.kind === 'findings-shown')
    return `${answer.reason} These findings come nearest:\n\n${shown}`
  const nearest =
    findings.length === 0 ? '' : `\nThe nearest findings, which may not help:\n\n${shown}`
  return `I do not know. ${answer.reason}${nearest}`
}
