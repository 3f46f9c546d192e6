// What a simulation found, for people: faults, figures, checks, and how to see a violation again.
import type { Catch } from '../../simulator/hunt.ts'
import type { SoakHour } from '../../simulator/soak.ts'
import { type Summary, checkRows } from '../../simulator/summary.ts'
import { table } from '../table.ts'

/** More violations than this say nothing that the first ones did not. */
const violationsShown = 10
const columns = 3

export function renderSummary(summary: Summary, seconds: number): string {
  const { seeds, from, virtualHours, events, hash, faultsTotal, requests } = summary
  const last = from + seeds - 1
  const range = seeds === 1 ? `seed ${from}` : `${seeds} seeds, ${from} to ${last}`
  const asked = Object.values(requests).reduce((sum, count) => sum + count, 0)
  return [
    `${range}: ${virtualHours.toFixed(1)} simulated hours in ${seconds.toFixed(1)} s, ${events} events, trace ${hash}`,
    '',
    `${faultsTotal} faults`,
    inColumns(counted(summary.faults)),
    '',
    `${asked} requests`,
    inColumns(counted(requests)),
    '',
    'Most of anything in one seed',
    inColumns(figureLines(summary)),
    '',
    table(['check', 'looked at', 'broken', 'what holds'], checkRows(summary)),
    '',
    verdictOf(summary),
  ].join('\n')
}

function verdictOf({ violations }: Summary): string {
  if (violations.length === 0) return 'Everything held.'
  const shown = violations.slice(0, violationsShown).map(({ seed, invariant, atMs, text }) => {
    return `seed ${seed}, ${(atMs / 1000).toFixed(1)} s: ${invariant} broken: ${text}`
  })
  const more = violations.length - shown.length
  const replays = [...new Set(violations.map(({ replay }) => replay))]
  return [
    ...shown,
    ...(more > 0 ? [`and ${more} more`] : []),
    '',
    'To see it again:',
    ...replays.slice(0, violationsShown).map((replay) => `  ${replay}`),
  ].join('\n')
}

const figureNames: Readonly<Record<string, string>> = {
  messagesPerPeerMost: 'messages to one machine in 10 s',
  journalBytesMost: 'bytes of a journal',
  stateEntriesMost: "entries of a machine's state",
  termsMost: 'terms begun in a minute',
  startsMost: 'starts of a model in a minute',
  messages: 'messages in all',
  terms: 'terms in all',
  journalWrites: 'journal writes in all',
}

function figureLines({ figures }: Summary): readonly string[] {
  return Object.entries(figures).map(([key, value]) => `${value} ${figureNames[key] ?? key}`)
}

function counted(counts: Readonly<Record<string, number>>): readonly string[] {
  return Object.entries(counts).map(([name, count]) => `${count} ${name}`)
}

function inColumns(cells: readonly string[]): string {
  const width = Math.max(0, ...cells.map((cell) => cell.length)) + 2
  const lines: string[] = []
  for (let index = 0; index < cells.length; index += columns) {
    const row = cells.slice(index, index + columns).map((cell) => cell.padEnd(width))
    lines.push(`  ${row.join('').trimEnd()}`)
  }
  return lines.join('\n')
}

export function catchCells(found: Catch): readonly string[] {
  const { bug, invariant, words, seed, caught, seeds, isCleanWithout } = found
  const passes = seed === null ? '' : isCleanWithout ? 'passes' : 'BREAKS TOO'
  return [
    bug,
    invariant,
    seed === null ? 'NOT CAUGHT' : String(seed),
    `${caught} of ${seeds}`,
    passes,
    words,
  ]
}

export const catchHeader = [
  'planted bug',
  'falls to',
  'seed',
  'caught in',
  'unplanted',
  'what is wrong',
]

export function renderCatches(catches: readonly Catch[]): string {
  return table(catchHeader, catches.map(catchCells))
}

/** For docs/simulator.md. */
export function renderCatchesMarkdown(catches: readonly Catch[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const rule = catchHeader.map(() => '---')
  return [catchHeader, rule, ...catches.map(catchCells)].map(line).join('\n')
}

export const soakHeader = [
  'hour',
  'journal bytes',
  'state entries',
  'messages/s/machine',
  'terms',
  'open requests',
  'heap MB',
]

export function soakCells(hour: SoakHour): readonly string[] {
  return [
    String(hour.hour),
    String(hour.journalBytes),
    String(hour.stateEntries),
    hour.messagesPerSecond.toFixed(2),
    String(hour.termsBegun),
    String(hour.requestsOpen),
    String(hour.heapMb),
  ]
}
