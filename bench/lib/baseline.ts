// Raw mlx-lm as a process that takes measuring orders, beside the daemon that is measured.
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface, type Interface } from 'node:readline'
import { join } from 'node:path'
import { programDir, pythonEnv, pythonPath } from './paths.ts'

export interface RawStream {
  readonly first: number
  readonly times: readonly number[]
  readonly promptTokens: number
}

export class Baseline {
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>

  private constructor(child: ChildProcess, reader: Interface) {
    this.#child = child
    this.#lines = reader[Symbol.asyncIterator]()
  }

  static async start(model: string, threads: number): Promise<Baseline> {
    const child = spawn(pythonPath, ['-m', 'bench.baseline', model], {
      cwd: join(programDir, 'worker'),
      env: pythonEnv(threads),
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const baseline = new Baseline(child, createInterface({ input: child.stdout }))
    await baseline.#answer()
    return baseline
  }

  async stream(prompt: string, tokens: number): Promise<RawStream> {
    return (await this.#order({ do: 'stream', prompt, tokens })) as RawStream
  }

  async stepSeconds(rows: number, steps: number): Promise<number> {
    return ((await this.#order({ do: 'steps', rows, steps })) as { step: number }).step
  }

  stop(): void {
    this.#child.kill('SIGKILL')
  }

  async #order(order: object): Promise<unknown> {
    this.#child.stdin?.write(`${JSON.stringify(order)}\n`)
    return this.#answer()
  }

  async #answer(): Promise<unknown> {
    const { value, done } = await this.#lines.next()
    if (done === true) throw new Error('the baseline process ended')
    return JSON.parse(value)
  }
}
