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

/** Many checks often fail to look for one reason, so the step that helps is said once, as are machines. */
function unknownText(findings: readonly Finding[]): string {
  const steps = new Map<string, Finding[]>()
  for (const finding of findings) {
    const next = finding.next ?? ''
    steps.set(next, [...(steps.get(next) ?? []), finding])
  }
  return [...steps]
    .flatMap(([next, group]) => [...unknownLines(group), ...(next === '' ? [] : [`    → ${next}`])])
    .join('\n')
}

function unknownLines(findings: readonly Finding[]): readonly string[] {
  const lines = new Map<string, { readonly machines: Set<string>; readonly finding: Finding }>()
  for (const finding of findings) {
    const why = reasonOf(finding)
    const line = lines.get(`${finding.number} ${why}`) ?? { machines: new Set(), finding }
    for (const machine of finding.machines) line.machines.add(machine)
    lines.set(`${finding.number} ${why}`, line)
  }
  return [...lines.values()].map(({ machines, finding }) =>
    reasonOf(finding) === finding.evidence
      ? briefText(finding)
      : `${signs[finding.level]} check ${finding.number}, ${[...machines].join(', ')}: ${reasonOf(finding)}`,
  )
}

/** The evidence without the machine that it begins with. */
function reasonOf({ evidence, machines }: Finding): string {
  const [machine] = machines
  const start = `${machine ?? ''}: `
  return machines.length === 1 && evidence.startsWith(start)
    ? evidence.slice(start.length)
    : evidence
}

function summary({ counts }: Diagnosis): string {
  const parts = [
    [counts.fail, 'wrong'],
    [counts.warn, 'to look at'],
    [counts.unknown, 'could not be checked'],
    [counts.pass, 'right'],
    [counts.skip, 'waiting or not asked for'],
  ] as const
  const told = parts
    .filter(([count]) => count > 0)
    .map(([count, words]) => `${count} ${words}`)
    .join(', ')
  if (told === '') return 'There was nothing to check.'
  return counts.fail + counts.warn + counts.unknown === 0 ? `Nothing is wrong: ${told}` : told
}
