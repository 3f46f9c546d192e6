// Keeps every group's prediction beside what its head then measured, and notices a machine that stays well
// under its prediction. The machine of the head keeps the books; nothing here decides anything.
import { appendFileSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Predicted, promptTokensIn } from '../../core/cluster/advice.ts'
import { machinesOf } from '../../core/cluster/group-plan.ts'
import type { MachineState, OwnHolding } from '../../core/cluster/state.ts'
import type { GroupId } from '../../core/ids.ts'
import type { MachineFacts } from '../../core/machine-facts/machine.ts'
import { type PromptRead, firstTokenSeconds } from '../../core/plan/score/first-token.ts'
import { type Pace, noPace, paceOf, takeSample } from '../../core/plan/score/pace.ts'
import type { ScoreRecord } from '../../core/plan/score/records.ts'
import {
  type SpeedSample,
  type SpeedSigns,
  findSlowMachines,
  slowForMs,
  slowSpeedShare,
} from '../../core/plan/score/slow-machines.ts'
import type { SlowView } from '../../wire/cluster-view.ts'

export interface ScoreKeeperParts {
  readonly file: string
  readonly nowMs: () => number
  readonly wallMs: () => number
  /** What this machine says of itself, to find the cause when it is slow. */
  readonly ownFacts: () => Promise<MachineFacts>
  /** The system's load average for each of its cores. */
  readonly loadPerCore: () => number
  readonly warn: (text: string) => void
}

interface Book {
  readonly model: string
  readonly expected: number
  pace: Pace
  statsMs: number
  samples: SpeedSample[]
  reads: PromptRead[]
  writtenMs: number
  writtenSamples: number
}

/** A measurement is written when this many new figures have come, at most this often. */
const samplesPerWriting = 3
const writeEveryMs = 30_000
const signsEveryMs = 20_000
const samplesKeptMs = 3 * slowForMs
const readsKept = 64

const nothingSeen: SpeedSigns = {
  throttled: null,
  onBattery: null,
  memoryPressure: null,
  otherGpuLoad: null,
  loadPerCore: null,
  plannedLink: null,
  usedLink: null,
  staleMeasurement: false,
  waitingShare: null,
}

export class ScoreKeeper {
  readonly #parts: ScoreKeeperParts
  readonly #books = new Map<GroupId, Book>()
  #signs = nothingSeen
  #signsMs = -Infinity

  constructor(parts: ScoreKeeperParts) {
    this.#parts = parts
  }

  /** Called after every step of the machine's loop; cheap while nothing is new. */
  look(state: MachineState): void {
    const present = new Set<GroupId>()
    for (const holding of state.holdings.values()) {
      const { group, reason } = holding.plan
      const predicted = reason?.predicted ?? null
      // A group that was put together otherwise than predicted is held against nothing.
      if (holding.rank !== 0 || holding.state !== 'ready' || predicted === null) continue
      present.add(group)
      const book = this.#books.get(group) ?? this.#open(holding, predicted)
      if (holding.statsMs === book.statsMs) continue
      book.statsMs = holding.statsMs
      this.#take(state, holding, book)
    }
    for (const group of this.#books.keys()) if (!present.has(group)) this.#books.delete(group)
  }

  /** A prompt that a group of this machine's head read for one request alone. */
  haveRead(group: GroupId, read: PromptRead): void {
    const book = this.#books.get(group)
    if (book !== undefined) book.reads = [...book.reads, read].slice(-readsKept)
  }

  /** Machines that have been well under their prediction for a minute. */
  slow(): readonly SlowView[] {
    const nowMs = this.#parts.nowMs()
    return [...this.#books].flatMap(([group, { model, samples }]) =>
      findSlowMachines(samples, nowMs).map(({ machine, sinceMs, ratio, cause, advice }) => ({
        group,
        model,
        machine,
        sinceMs: nowMs - sinceMs,
        ratio,
        cause,
        advice,
      })),
    )
  }

  #open({ plan }: OwnHolding, predicted: Predicted): Book {
    const { tokensPerSecond, restsOn } = predicted
    const book: Book = {
      model: plan.model.name,
      expected: tokensPerSecond.value,
      pace: noPace,
      statsMs: -1,
      samples: [],
      reads: [],
      writtenMs: -Infinity,
      writtenSamples: 0,
    }
    this.#books.set(plan.group, book)
    this.#write({
      kind: 'prediction',
      atMs: this.#parts.wallMs(),
      group: plan.group,
      model: plan.model.name,
      strategy: plan.strategy,
      machines: machinesOf(plan).length,
      restsOn,
      tokensPerSecond,
      firstTokenSeconds: predicted.firstTokenSeconds,
    })
    return book
  }

  #take(state: MachineState, holding: OwnHolding, book: Book): void {
    const nowMs = this.#parts.nowMs()
    const before = book.pace.steady.length
    const { tokensPerSecond, queue = 0 } = holding
    book.pace = takeSample(book.pace, { atMs: nowMs, tokensPerSecond, queue })
    const newest = book.pace.steady.at(-1)
    if (newest === undefined || book.pace.steady.length === before) return
    const ratio = newest.tokensPerSecond / book.expected
    if (ratio <= slowSpeedShare) this.#lookForSigns(nowMs)
    book.samples = [
      ...book.samples.filter((sample) => nowMs - sample.atMs < samplesKeptMs),
      {
        machine: state.self.id,
        atMs: newest.atMs,
        predictedSeconds: 1 / book.expected,
        measuredSeconds: 1 / newest.tokensPerSecond,
        signs: this.#signs,
      },
    ]
    book.writtenSamples += 1
    const rate = paceOf(book.pace)
    const isTime =
      nowMs - book.writtenMs >= writeEveryMs && book.writtenSamples >= samplesPerWriting
    if (rate === null || !isTime) return
    book.writtenMs = nowMs
    book.writtenSamples = 0
    this.#write({
      kind: 'measurement',
      atMs: this.#parts.wallMs(),
      group: holding.plan.group,
      tokensPerSecond: rate,
      firstTokenSeconds: firstTokenSeconds(book.reads, promptTokensIn(holding.plan.contextTokens)),
      requests: book.pace.steady.length,
    })
  }

  /** Looking costs something, so it is done only while there is a reason. */
  #lookForSigns(nowMs: number): void {
    if (nowMs - this.#signsMs < signsEveryMs) return
    this.#signsMs = nowMs
    this.#parts.ownFacts().then(
      ({ power, memory }) => {
        this.#signs = {
          ...nothingSeen,
          onBattery: power.source.known ? power.source.value === 'battery' : null,
          loadPerCore: this.#parts.loadPerCore(),
          memoryPressure: memory.pressure.known ? memory.pressure.value : null,
        }
      },
      () => undefined,
    )
  }

  #write(record: ScoreRecord): void {
    try {
      mkdirSync(dirname(this.#parts.file), { recursive: true })
      appendFileSync(this.#parts.file, `${JSON.stringify(record)}\n`)
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      this.#parts.warn(`a prediction could not be kept in ${this.#parts.file}: ${why}`)
    }
  }
}
