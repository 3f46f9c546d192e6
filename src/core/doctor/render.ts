// A diagnosis in words, for a terminal: what is wrong first, and for each the next step.
import { readMore } from '../citation.ts'
import type { Finding, Level } from './finding.ts'
import type { Diagnosis } from './run-doctor.ts'

const signs: Readonly<Record<Level, string>> = {
  fail: '✗',
  warn: '!',
  unknown: '?',
  pass: '✓',
  skip: '·',
}

export function renderDiagnosis(
  diagnosis: Diagnosis,
  options: { readonly verbose: boolean },
): string {
  const of = (level: Level): readonly Finding[] =>
    diagnosis.findings.filter((one) => one.level === level)
  const blocks = [
    ...of('fail').map(findingText),
    ...of('warn').map(findingText),
    unknownText(of('unknown')),
    ...(options.verbose ? [...of('pass'), ...of('skip')].map(briefText) : []),
    summary(diagnosis),
  ]
  return `${blocks.filter((block) => block !== '').join('\n')}\n`
}

function findingText(finding: Finding): string {
  const next = finding.next === null ? [] : [`    → ${finding.next}`]
  const more = readMore(finding.kbFindings)
  return [
    `${signs[finding.level]} check ${finding.number}, ${finding.title}`,
    `    ${finding.evidence}`,
    ...next,
    ...(more === null ? [] : [`    ${more}`]),
  ].join('\n')
}

const briefText = (finding: Finding): string =>
  `${signs[finding.level]} check ${finding.number}, ${finding.evidence}`

/** Many checks often fail to look for one reason, so the step that helps is said once. */
function unknownText(findings: readonly Finding[]): string {
  const steps = new Map<string, Finding[]>()
  for (const finding of findings) {
    const next = finding.next ?? ''
    steps.set(next, [...(steps.get(next) ?? []), finding])
  }
  return [...steps]
    .flatMap(([next, group]) => [
      ...group.map(briefText),
      ...(next === '' ? [] : [`    → ${next}`]),
    ])
    .join('\n')
}

function summary({ counts }: Diagnosis): string {
  const parts = [
    [counts.fail, 'wrong'],
    [counts.warn, 'to look at'],
    [counts.unknown, 'could not be checked'],
    [counts.pass, 'right'],
    [counts.skip, 'waiting or not asked for'],
  ] as const
  return parts
    .filter(([count]) => count > 0)
    .map(([count, words]) => `${count} ${words}`)
    .join(', ')
}
