// ps → ranks that run here and the parents of our own process. Same options on macOS and Linux.
import { type Fact, chainFact, known, unknown } from '../../core/machine-facts/fact.ts'
import type { LaunchContext, RankProcess } from '../../core/machine-facts/machine.ts'
import { wholeLines } from './text.ts'

export const processListCommand = ['ps', '-axww', '-o', 'pid=,ppid=,command='] as const

export interface ProcessLine {
  readonly pid: number
  readonly parentPid: number
  readonly command: string
}

export function parseProcesses(text: string): Fact<readonly ProcessLine[]> {
  const processes = wholeLines(text).flatMap((line) => {
    const match = /^\s*(\d+)\s+(\d+)\s+(\S.*)$/.exec(line)
    if (match === null) return []
    return [{ pid: Number(match[1]), parentPid: Number(match[2]), command: match[3] ?? '' }]
  })
  return processes.length === 0
    ? unknown('not-understood', 'the output of ps lists no process')
    : known(processes)
}

/** Ranks, and only ranks, run the module bushel_worker. */
export function isRankCommand(command: string): boolean {
  return /\s-m\s+bushel_worker\b/.test(command)
}

export function ranksOf(
  processes: Fact<readonly ProcessLine[]>,
  expectedPids: readonly number[] | null,
): Fact<readonly RankProcess[]> {
  return chainFact(processes, (all) =>
    known(
      all
        .filter((one) => isRankCommand(one.command))
        .map((one) => ({
          pid: one.pid,
          parentPid: one.parentPid,
          expected: isChildOfDaemon(one, all) || (expectedPids?.includes(one.pid) ?? null),
        })),
    ),
  )
}

/** A rank whose parent is a running daemon is that daemon's own; one that was left has another parent. */
function isChildOfDaemon({ parentPid }: ProcessLine, all: readonly ProcessLine[]): boolean {
  const parent = all.find((one) => one.pid === parentPid)
  return parent !== undefined && /\/cli\/main\.[jt]s\s(.*\s)?up(\s|$)/.test(parent.command)
}

export function launchContextOf(
  processes: Fact<readonly ProcessLine[]>,
  self: { readonly pid: number; readonly uid: number } | null,
): Fact<LaunchContext> {
  if (self === null) return unknown('not-captured', 'the captures do not name our own process')
  return chainFact(processes, (all) => {
    const ancestors: string[] = []
    let at = all.find((one) => one.pid === self.pid)?.parentPid
    while (at !== undefined && at > 0 && ancestors.length < 32) {
      const parent = all.find((one) => one.pid === at)
      if (parent === undefined) break
      ancestors.push(programName(parent.command))
      at = parent.parentPid
    }
    return known({ isRoot: self.uid === 0, ancestors })
  })
}

/** "/System/…/Terminal.app/Contents/MacOS/Terminal -psn" → "Terminal"; "-zsh" → "zsh". */
function programName(command: string): string {
  const app = /\/([^/]+)\.app\/Contents\/MacOS\//.exec(command)?.[1]
  if (app !== undefined) return app
  const path = command.split(' ')[0] ?? ''
  return (path.split('/').at(-1) ?? path).replace(/^-/, '').replace(/:$/, '')
}
