// The last generations of this gateway, and what its clients have seen so far, in numbers.
import type { GenerationId } from '../core/ids.ts'
import { type GenerationReport, causeWord } from '../core/serving/report.ts'

const reportsKept = 500

export interface ServingCounters {
  readonly finished: number
  readonly gone: number
  readonly failed: Readonly<Record<string, number>>
  /** Answers that went on after a loss, and how long their readers waited for it. */
  readonly resumes: number
  readonly resumesInexact: number
  readonly lostMs: number
  readonly losses: Readonly<Record<string, number>>
  readonly tokens: number
}

export class GenerationLog {
  readonly #reports = new Map<GenerationId, GenerationReport>()
  #finished = 0
  #gone = 0
  #resumes = 0
  #resumesInexact = 0
  #lostMs = 0
  #tokens = 0
  readonly #failed = new Map<string, number>()
  readonly #losses = new Map<string, number>()

  add(report: GenerationReport): void {
    this.#reports.set(report.id, report)
    const [oldest] = this.#reports.keys()
    if (this.#reports.size > reportsKept && oldest !== undefined) this.#reports.delete(oldest)
    const outcome = report.outcome ?? ''
    if (outcome === 'finished') this.#finished += 1
    else if (outcome === 'gone') this.#gone += 1
    else count(this.#failed, outcome)
    this.#tokens += report.tokens
    this.#resumes += report.gaps.length
    if (!report.exact) this.#resumesInexact += report.gaps.length
    for (const gap of report.gaps) this.#lostMs += gap.noticedMs + gap.waitedMs + gap.reworkedMs
    for (const { cause } of report.attempts) if (cause !== '') count(this.#losses, causeWord(cause))
  }

  /** Newest first. */
  list(): readonly GenerationReport[] {
    return [...this.#reports.values()].toReversed()
  }

  counters(): ServingCounters {
    return {
      finished: this.#finished,
      gone: this.#gone,
      failed: Object.fromEntries(this.#failed),
      resumes: this.#resumes,
      resumesInexact: this.#resumesInexact,
      lostMs: Math.round(this.#lostMs),
      losses: Object.fromEntries(this.#losses),
      tokens: this.#tokens,
    }
  }
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
