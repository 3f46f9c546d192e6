// A rank as a Python process: frames on descriptors 3 and 4, everything it prints into a log of its own.
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { translateRankLog } from '../core/doctor/rank-log.ts'
import type { MachineId } from '../core/ids.ts'
import { limits } from '../core/limits.ts'
import type { RankEvents, RankLauncher, RankProcess } from '../ports/rank-launcher.ts'
import { type FrameToWorker, type LoadFrame, frameFromWorker } from '../wire/worker-frames.ts'
import { rankArguments } from './left-ranks.ts'
import { LineSplitter, LineTooLongError } from './line-splitter.ts'

export interface RankProcessOptions {
  readonly python: string
  /** Folder that holds the package bushel_worker. */
  readonly workerDir: string
  readonly logDir: string
  /** By which its ranks are known in the process table. */
  readonly machine: MachineId
  /** Preloads, thread counts and the like, found out once per machine. */
  readonly env: Readonly<Record<string, string>>
  readonly warn: (text: string, about: Readonly<Record<string, unknown>>) => void
}

/** How much of a dead rank's log goes into the cause of its end. */
const lastLines = 3
const searchedLines = 400

export class RankProcesses implements RankLauncher {
  readonly #options: RankProcessOptions

  constructor(options: RankProcessOptions) {
    this.#options = options
    mkdirSync(options.logDir, { recursive: true })
  }

  launch(load: LoadFrame, events: RankEvents): RankProcess {
    const { python, workerDir, logDir, machine, env } = this.#options
    const logFile = join(logDir, `rank-${load.group}-${load.stage.index}.${load.world.rank}.log`)
    const log = openSync(logFile, 'a')
    const child = spawn(python, rankArguments(machine), {
      cwd: workerDir,
      stdio: ['ignore', log, log, 'pipe', 'pipe'],
      env: { ...baseEnv(), ...env, ...load.world.env, PYTHONPATH: workerDir },
      // Its own process group: Ctrl-C in the terminal is for the daemon, which then ends ranks in order.
      detached: true,
    })
    closeSync(log)
    return watch(child, { load, events, logFile, warn: this.#options.warn })
  }
}

/** Ranks get what Python needs and nothing that could carry a secret. */
export function baseEnv(): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const name of [
    'PATH',
    'HOME',
    'LANG',
    'LC_ALL',
    'TMPDIR',
    'CUDA_VISIBLE_DEVICES',
    'LD_LIBRARY_PATH',
  ]) {
    const value = process.env[name]
    if (value !== undefined) kept[name] = value
  }
  return kept
}

/** Somebody, or the system, ended it: no fault of what it was doing. */
const sentFromOutside: ReadonlySet<string> = new Set(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'])

function watch(
  child: ChildProcess,
  about: { load: LoadFrame; events: RankEvents; logFile: string; warn: RankProcessOptions['warn'] },
): RankProcess {
  const { load, events, logFile, warn } = about
  const toRank = child.stdio[3] as Writable
  const fromRank = child.stdio[4] as Readable
  let ended = false
  const end = (cause: string, crashed: boolean): void => {
    if (ended) return
    ended = true
    events.exit(cause, crashed)
  }
  // Writing to a rank that has just died is not news; its exit is.
  toRank.on('error', () => undefined)
  fromRank.on('error', () => undefined)
  const lines = new LineSplitter(limits.workerLineBytesMax)
  const giveUp = (reason: string): void => {
    // It has lost its senses; nothing it says afterwards can be told apart.
    child.kill('SIGKILL')
    end(`the rank was ended: it sent ${reason}`, true)
  }
  fromRank.on('data', (chunk: Buffer) => {
    if (ended) return
    for (const line of wholeLines(lines, chunk, giveUp)) {
      const frame = readFrame(line)
      if (frame === null) warn('a rank sent a line that is no frame', { group: load.group })
      else if (!ended) events.frame(frame)
    }
  })
  child.on('error', (error) => end(`the rank could not be started: ${error.message}`, false))
  child.on('close', (code, signal) => {
    const isCrash = signal === null ? code !== 0 : !sentFromOutside.has(signal)
    end(causeOf({ code, signal, logFile }), isCrash)
  })
  const send = (frame: FrameToWorker): void => {
    if (!ended) toRank.write(`${JSON.stringify(frame)}\n`)
  }
  send(load)
  return {
    pid: child.pid ?? 0,
    send,
    signal: (signal) => void child.kill(`SIG${signal}`),
  }
}

function wholeLines(
  lines: LineSplitter,
  chunk: Buffer,
  giveUp: (reason: string) => void,
): readonly string[] {
  try {
    return lines.push(chunk)
  } catch (error) {
    if (!(error instanceof LineTooLongError)) throw error
    giveUp(error.message)
    return []
  }
}

function readFrame(line: string): ReturnType<typeof frameFromWorker.parse> | null {
  try {
    const parsed = frameFromWorker.safeParse(JSON.parse(line))
    return parsed.success ? parsed.data : null
  } catch {
    return null
  }
}

function causeOf(end: { code: number | null; signal: string | null; logFile: string }): string {
  const how = end.signal === null ? `exit code ${end.code ?? 'unknown'}` : `signal ${end.signal}`
  const tail = lastLogLines(end.logFile)
  return tail === '' ? `the rank ended with ${how}` : `the rank ended with ${how}: ${tail}`
}

function lastLogLines(file: string): string {
  try {
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    const tail = lines.slice(-lastLines)
    // A known error may stand above a long traceback; it is the line that explains.
    const known = translateRankLog(lines.slice(-searchedLines, -lastLines)).map((one) => one.line)
    return [...known.slice(0, 1).map((line) => line.slice(0, 300)), ...tail]
      .join(' | ')
      .slice(0, 900)
  } catch {
    return ''
  }
}
