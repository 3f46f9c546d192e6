// Faults at random moments under a steady load of answers, each held against the same answer unbroken.
import { type Answer, ask, longestPause } from './client.ts'
import { type Box, type Host, rankPids, until } from './hosts.ts'

export const faultKinds = [
  'rank killed',
  'rank stopped',
  'daemon killed',
  'host lost',
  'cable pulled',
  'host cut off',
] as const
export type FaultKind = (typeof faultKinds)[number]

export interface Question {
  readonly prompt: string
  readonly seed: number
  readonly stream: boolean
}

export interface FaultCount {
  readonly kind: FaultKind
  count: number
  /** Pauses above this many ms that readers saw while such a fault was the last one. */
  readonly pausesMs: number[]
}

export interface ChaosReport {
  readonly faults: readonly FaultCount[]
  answers: number
  wrong: string[]
  lost: string[]
  /** Answers that were under way when something was lost and went on. */
  resumed: number
}

/** Asked over and over: two of three as streams. */
export const chaosQuestions: readonly Question[] = Array.from({ length: 12 }, (_, index) => ({
  prompt: `question ${index}`,
  seed: index,
  stream: index % 3 !== 2,
}))

/** A pause that no healthy run shows. */
const pauseMs = 400

export class Chaos {
  readonly #box: Box
  readonly #model: string
  /** Where people ask: a machine that holds nothing and is never hit. */
  readonly #gateway: Host
  readonly #victims: readonly Host[]
  readonly #questions: readonly Question[]
  readonly #unbroken = new Map<Question, Answer>()
  readonly #random: () => number
  readonly report: ChaosReport
  #last: FaultCount | null = null
  #stopping = false

  constructor(options: {
    box: Box
    model: string
    gateway: Host
    victims: readonly Host[]
    questions: readonly Question[]
    seed: number
  }) {
    this.#box = options.box
    this.#model = options.model
    this.#gateway = options.gateway
    this.#victims = options.victims
    this.#questions = options.questions
    this.#random = generator(options.seed)
    this.report = {
      faults: faultKinds.map((kind) => ({ kind, count: 0, pausesMs: [] })),
      answers: 0,
      wrong: [],
      lost: [],
      resumed: 0,
    }
  }

  /** What every answer is held against. */
  async learn(): Promise<void> {
    const learn = async (question: Question): Promise<void> => {
      const answer = await this.#ask(question)
      if (answer.error !== null || answer.finish === null)
        throw new Error(`the unbroken answer failed: ${answer.error ?? 'no end'}`)
      this.#unbroken.set(question, answer)
    }
    await Promise.all(this.#questions.map(learn))
  }

  /** Keeps this many clients asking while that many faults are made, and lets them finish. */
  async run(options: {
    clients: number
    faults: number
    kinds?: readonly FaultKind[]
  }): Promise<void> {
    const { clients, faults, kinds = faultKinds } = options
    this.#stopping = false
    const asking = Array.from({ length: clients }, (_, index) => this.#keepAsking(index))
    for (let number = 0; number < faults; number++) {
      await pause(200 + this.#random() * 500)
      await this.#fault(kinds[Math.floor(this.#random() * kinds.length)] ?? 'rank killed')
    }
    this.#stopping = true
    await Promise.all(asking)
  }

  async #keepAsking(client: number): Promise<void> {
    for (let turn = client; !this.#stopping; turn++) {
      const question = this.#questions[turn % this.#questions.length]
      if (question === undefined) return
      const during = this.#last
      const answer = await this.#ask(question).catch((error: unknown) => String(error))
      this.report.answers += 1
      this.#judge(question, answer, during)
    }
  }

  #judge(question: Question, answer: Answer | string, during: FaultCount | null): void {
    const about = `"${question.prompt}" seed ${question.seed} (last fault: ${this.#last?.kind ?? 'none'})`
    const expected = this.#unbroken.get(question)
    if (typeof answer === 'string' || answer.error !== null || answer.finish === null) {
      const why = typeof answer === 'string' ? answer : (answer.error ?? 'the stream had no end')
      this.report.lost.push(`${about}: ${why}`)
      return
    }
    const isEqual =
      answer.text === expected?.text &&
      answer.finish === expected.finish &&
      answer.usage?.completion_tokens === expected.usage?.completion_tokens
    if (!isEqual)
      this.report.wrong.push(
        `${about}: ${JSON.stringify(answer.text)} ≠ ${JSON.stringify(expected?.text)}`,
      )
    if (!question.stream) return
    const longest = longestPause(answer)
    const blamed = during ?? this.#last
    if (longest > pauseMs && blamed !== null) {
      blamed.pausesMs.push(longest)
      this.report.resumed += 1
    }
  }

  #ask({ prompt, seed, stream }: Question): Promise<Answer> {
    return ask(this.#gateway, { model: this.#model, prompt, seed, stream })
  }

  async #fault(kind: FaultKind): Promise<void> {
    const counted = this.report.faults.find((one) => one.kind === kind)
    if (counted !== undefined) {
      counted.count += 1
      this.#last = counted
    }
    const victim = this.#pick(this.#victims)
    const other = this.#pick([...this.#victims.filter((host) => host !== victim), this.#gateway])
    const others = this.#box.hosts.filter((host) => host !== victim).map((host) => host.name)
    switch (kind) {
      case 'rank killed':
        await this.#signalRank('SIGKILL')
        return
      case 'rank stopped':
        // Nobody wakes it: whoever watches must notice and end it.
        await this.#signalRank('SIGSTOP')
        return
      case 'daemon killed':
        await victim.killDaemon()
        await this.#restart(victim)
        return
      case 'host lost':
        this.#box.partition([victim.name], others, 'down')
        await victim.killDaemon()
        await pause(this.#random() * 1000)
        this.#box.partition([victim.name], others, 'up')
        await this.#restart(victim)
        return
      case 'cable pulled':
        this.#box.link(victim.name, other.name, 'thunderbolt', 'down')
        await pause(500 + this.#random() * 1500)
        this.#box.link(victim.name, other.name, 'thunderbolt', 'up')
        return
      case 'host cut off':
        this.#box.partition([victim.name], others, 'down')
        await pause(500 + this.#random() * 4500)
        this.#box.partition([victim.name], others, 'up')
    }
  }

  async #restart(host: Host): Promise<void> {
    host.up('--model', 'none', '--memory', '4GB')
    await until(() => host.isUp(), `the daemon of ${host.name} again`, 60_000)
  }

  async #signalRank(signal: 'SIGKILL' | 'SIGSTOP'): Promise<void> {
    await until(() => rankPids().length > 0, 'a rank to hit', 120_000)
    const pid = this.#pick(rankPids())
    try {
      process.kill(pid, signal)
    } catch {
      // It went by itself in between.
    }
  }

  #pick<T>(list: readonly T[]): T {
    const found = list[Math.floor(this.#random() * list.length)]
    if (found === undefined) throw new Error('there is nothing to pick from')
    return found
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms))
}

/** The same numbers for the same seed: a bad run can be had again, as far as machines are the same twice. */
function generator(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

export function describeChaos(report: ChaosReport): string {
  const rows = report.faults
    .filter((fault) => fault.count > 0)
    .map(({ kind, count, pausesMs }) => {
      const sorted = pausesMs.toSorted((x, y) => x - y)
      const at = (part: number): string =>
        sorted.length === 0
          ? '–'
          : `${((sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0) / 1000).toFixed(1)} s`
      return `  ${kind.padEnd(14)} ${String(count).padStart(4)}   pauses ${String(sorted.length).padStart(4)}   median ${at(0.5).padStart(6)}   longest ${at(1).padStart(6)}`
    })
  const faults = report.faults.reduce((sum, fault) => sum + fault.count, 0)
  return [
    ...rows,
    `  ${faults} faults, ${report.answers} answers: ${report.lost.length} lost, ${report.wrong.length} wrong, ${report.resumed} with a pause`,
  ].join('\n')
}
