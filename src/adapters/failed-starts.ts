// How many starts have failed since this machine booted, kept over restarts of the daemon: drivers forget with the
// machine, not with us.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { failedStartsFile } from '../wire/failed-starts.ts'

export interface FailedStartsOptions {
  readonly path: string
  /** When the machine booted, by its own clock. */
  readonly bootMs: () => number
  readonly warn: (text: string) => void
}

/** The clock may be set right after booting; nobody boots twice in this time. */
const sameBootMs = 60_000

export class FailedStarts {
  readonly #options: FailedStartsOptions

  constructor(options: FailedStartsOptions) {
    this.#options = options
  }

  count(): number {
    const { path, bootMs } = this.#options
    try {
      const kept = failedStartsFile.parse(JSON.parse(readFileSync(path, 'utf8')))
      return Math.abs(kept.bootMs - bootMs()) < sameBootMs ? kept.failed : 0
    } catch {
      // None yet, or unreadable: what cannot be told is not counted.
      return 0
    }
  }

  add(): void {
    const { path, bootMs, warn } = this.#options
    const content = { bootMs: Math.round(bootMs()), failed: this.count() + 1 }
    try {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, `${JSON.stringify(content)}\n`)
    } catch (error) {
      warn(`cannot keep count of failed starts in ${path}: ${(error as Error).message}`)
    }
  }
}
