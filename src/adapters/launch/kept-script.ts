// A launched script as a process with its keeper (launch_keeper.py): it ends with its daemon, whatever ends that.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { launchLimits } from '../../core/launch/limits.ts'
import { LineSplitter } from '../line-splitter.ts'

export interface ScriptStart {
  readonly python: string
  /** The file launch_keeper.py. */
  readonly keeper: string
  /** Removed by the keeper when the script has ended. */
  readonly folder: string
  readonly workingFolder: string
  readonly script: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly hasInput: boolean
}

export interface ScriptEvents {
  started(pid: number): void
  /** The next piece waits until this one has found its place. */
  output(stream: 'stdout' | 'stderr', data: Buffer): Promise<void>
  /** Once, after the last output. */
  exited(end: { code: number; signal: number } | { failed: string }): void
}

export class KeptScript {
  readonly #input: Writable | null
  readonly #words: Writable
  readonly ended: Promise<void>

  constructor(start: ScriptStart, events: ScriptEvents) {
    const { python, keeper, folder, workingFolder, script, args } = start
    const command = [python, script, ...args]
    const child = spawn(python, ['-I', keeper, folder, workingFolder, ...command], {
      env: { ...start.env },
      stdio: [start.hasInput ? 'pipe' : 'ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
      // Ctrl-C in the daemon's terminal is for the daemon.
      detached: true,
    })
    this.#input = child.stdin
    this.#words = child.stdio[3] as Writable
    for (const stream of [this.#input, this.#words]) stream?.on('error', () => undefined)
    const heard = { pid: 0, end: null as { code: number; signal: number } | null }
    this.#listen(child.stdio[4] as Readable, (word, [first = 0, second = 0]) => {
      if (word === 'started') events.started((heard.pid = first))
      else if (word === 'exited') heard.end = { code: first, signal: second }
    })
    let lastMs = performance.now()
    let sending = 0
    const pump = async (stream: Readable, name: 'stdout' | 'stderr'): Promise<void> => {
      for await (const chunk of stream) {
        sending += 1
        await events.output(name, chunk as Buffer)
        sending -= 1
        lastMs = performance.now()
      }
    }
    const pumps = Promise.allSettled([
      pump(child.stdout as Readable, 'stdout'),
      pump(child.stderr as Readable, 'stderr'),
    ])
    const gone = new Promise<string | null>((resolve) => {
      child.once('error', (error) => resolve(error.message))
      child.once('exit', () => resolve(null))
    })
    this.ended = (async (): Promise<void> => {
      const failure = await gone
      // A keeper that was killed leaves its script to us.
      if (heard.end === null && heard.pid > 0) killGroup(heard.pid)
      // Whoever left the script's group may hold its output open; that is waited for only while some comes.
      const isQuiet = (): boolean =>
        sending === 0 && performance.now() - lastMs > launchLimits.aliveEveryMs
      await Promise.race([pumps, until(isQuiet)])
      child.stdout?.destroy()
      child.stderr?.destroy()
      events.exited(heard.end ?? { failed: failure ?? 'its keeper was killed' })
    })()
  }

  /** Settles when the script has room for more. */
  async write(data: Buffer): Promise<void> {
    const input = this.#input
    if (input === null || input.destroyed || !input.writable) return
    if (!input.write(data))
      await Promise.race([once(input, 'drain'), once(input, 'close')]).catch(() => undefined)
  }

  endInput(): void {
    this.#input?.end()
  }

  signal(number: number): void {
    this.#words.write(`signal ${number}\n`)
  }

  /** TERM, and KILL for whoever does not go. */
  stop(): void {
    this.#words.write('stop\n')
  }

  #listen(stream: Readable, heard: (word: string, values: readonly number[]) => void): void {
    const lines = new LineSplitter(1024)
    stream.on('error', () => undefined)
    stream.on('data', (chunk: Buffer) => {
      for (const line of lines.push(chunk)) {
        const [word = '', ...values] = line.split(' ')
        heard(word, values.map(Number))
      }
    })
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended with its keeper.
  }
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 50))
}
