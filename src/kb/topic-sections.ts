// The text of a topic's file: "What to know", "Pitfalls" and "Questions", then what else it has.
import { citedIds } from './citations.ts'
import type { SplitFile } from './front-matter.ts'
import type { Problem } from './problems.ts'
import type { Topic, TopicQuestion } from './types.ts'

export type TopicSections = Pick<Topic, 'know' | 'pitfalls' | 'questions' | 'more'>

export type SectionsOutcome =
  | { readonly kind: 'parsed'; readonly sections: TopicSections }
  | { readonly kind: 'malformed'; readonly problems: readonly Problem[] }

interface Section {
  readonly heading: string
  readonly line: number
  readonly text: string
}

export function parseSections(split: SplitFile): SectionsOutcome {
  const problems: Problem[] = []
  const complain = (line: number, message: string): void =>
    void problems.push({ file: split.file, line, message })
  const sections = cut(split.text, '## ', split.textLine)
  const named = (heading: string): Section => {
    const found = sections.find((section) => section.heading === heading)
    if (found === undefined) complain(split.textLine, `the section "## ${heading}" is missing`)
    return found ?? { heading, line: split.textLine, text: '' }
  }
  const know = named('What to know')
  const pitfalls = named('Pitfalls')
  const questions = named('Questions')
  const bullets = pitfalls.text
    .split(/^- /m)
    .slice(1)
    .map((bullet) => bullet.trim().replace(/\n\s*/g, ' '))
  if (problems.length === 0 && bullets.length === 0)
    complain(pitfalls.line, '"## Pitfalls" must be a list of lines that begin with "- "')
  const asked = cut(questions.text, '### ', questions.line + 1).map((section): TopicQuestion => {
    const cites = citedIds(section.text)
    if (cites.length === 0)
      complain(section.line, `the answer to "${section.heading}" cites no finding (kb# and its id)`)
    return { question: section.heading, answer: section.text, cites }
  })
  if (problems.length > 0) return { kind: 'malformed', problems }
  const known = new Set([know, pitfalls, questions])
  const more = sections
    .filter((section) => !known.has(section))
    .map(({ heading, text }) => ({ heading, text }))
  return {
    kind: 'parsed',
    sections: { know: know.text, pitfalls: bullets, questions: asked, more },
  }
}

/** Cuts a text at the lines that begin with `mark`; what stands before the first is dropped. */
function cut(text: string, mark: string, firstLine: number): Section[] {
  const sections: { heading: string; line: number; lines: string[] }[] = []
  for (const [index, line] of text.split('\n').entries())
    if (line.startsWith(mark))
      sections.push({ heading: line.slice(mark.length).trim(), line: firstLine + index, lines: [] })
    else sections.at(-1)?.lines.push(line)
  return sections.map(({ heading, line, lines }) => ({
    heading,
    line,
    text: lines.join('\n').trim(),
  }))
}
