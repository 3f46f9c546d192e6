// A diagnosis in words, for a terminal: what is wrong first, and for each the next step.
import type { Finding, Level } from './finding.ts'
import type { Diagnosis } from './run-doctor.ts'

const signs: Readonly<Record<Level, string>> = {
  fail: '✗',
  warn: '!',
  unknown: '?',
  pass: '✓',
  skip: '·',
}

const order: readonly Level[] = ['fail', 'warn', 'unknown', 'pass', 'skip']

export function renderDiagnosis(
  diagnosis: Diagnosis,
  options: { readonly verbose: boolean },
): string {
  const shown = diagnosis.findings.filter((one) => options.verbose || !isQuiet(one.level))
  const lines = order.flatMap((level) =>
    shown.filter((one) => one.level === level).flatMap(findingLines),
  )
  return `${[...lines, ...(lines.length === 0 ? [] : ['']), summary(diagnosis)].join('\n')}\n`
}

const isQuiet = (level: Level): boolean => level === 'pass' || level === 'skip'

function findingLines(finding: Finding): readonly string[] {
  const lines = [
    `${signs[finding.level]} check ${finding.number}, ${finding.title}`,
    `    ${finding.evidence}`,
  ]
  if (finding.next !== null && finding.level !== 'pass') lines.push(`    → ${finding.next}`)
  return lines
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
