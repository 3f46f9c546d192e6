// Clients: they ask through any machine's gateway, read what comes, hang up, or read slowly. Each compares
// every token with the unbroken answer.
import type { AttemptId, GenerationId, MachineId } from '../../core/ids.ts'
import type { AttemptOrder } from '../../runtime/attempts.ts'
import type { GenerationListener } from '../../runtime/generations.ts'
import { type Answer, questionFor, refusalCode, tokenAt } from '../answers.ts'
import type { SimHost } from '../host.ts'
import type { Life } from '../life.ts'
import type { Random } from '../random.ts'
import type { World } from '../world.ts'

export interface Request {
  readonly answer: Answer
  readonly model: string
  readonly host: SimHost
  readonly life: Life
  readonly beganMs: number
  readonly isSlow: boolean
  readonly received: number[]
  ends: number
  outcome: 'open' | 'finished' | 'failed' | 'hung-up' | 'gateway-lost'
  failure: string
  /** The attempt that may speak, and the group it runs on. */
  speaker: { attempt: AttemptId; group: string; machine: MachineId } | null
  /** Nothing is being done for it, since then. */
  waitingSinceMs: number | null
  cancel: () => void
}

export class Clients {
  readonly requests: Request[] = []
  readonly #world: World
  readonly #random: Random
  readonly #byGeneration = new Map<string, Request>()
  disconnects = 0
  slowReaders = 0

  constructor(world: World) {
    this.#world = world
    this.#random = world.random.stream('clients')
  }

  get open(): readonly Request[] {
    return this.requests.filter((request) => request.outcome === 'open')
  }

  /** Somebody asks something of some machine; null when there is nobody to ask or nothing to ask for. */
  ask(): Request | null {
    const host = this.#random.pick(this.#world.hosts.filter((other) => other.isRunning))
    const life = host?.life ?? null
    if (host === undefined || life === null) return null
    const wanted = life.serving.models().flatMap(({ deployment }) => deployment?.model.name ?? [])
    const model = this.#random.pick(wanted)
    if (model === undefined) return null
    const answer = {
      number: this.requests.length,
      length: this.#random.whole(1, 60),
      isRefused: this.#random.chance(0.03),
    }
    const request: Request = {
      answer,
      model,
      host,
      life,
      beganMs: this.#world.nowMs,
      isSlow: this.#random.chance(0.1),
      received: [],
      ends: 0,
      outcome: 'open',
      failure: '',
      speaker: null,
      waitingSinceMs: this.#world.nowMs,
      cancel: () => undefined,
    }
    this.requests.push(request)
    if (request.isSlow) this.slowReaders += 1
    const id = `gen-${answer.number}` as GenerationId
    this.#byGeneration.set(id, request)
    this.#world.tell(host.spec.name, 'asked', `${id} ${model} ${answer.length}`)
    const order = { name: model, question: questionFor(answer), id }
    request.cancel = life.serving.generate(order, whileAlive(life, this.#listener(request))).cancel
    return request
  }

  hangUp(request: Request): void {
    if (request.outcome !== 'open') return
    this.disconnects += 1
    this.#end(request, 'hung-up')
    request.cancel()
  }

  /** The request behind an attempt, by the name that its gateway or a machine it asked knows it by. */
  requestOf(attempt: string): Request | undefined {
    return this.#byGeneration.get(attempt.split('.', 1)[0] ?? '')
  }

  /** The same for requests that are over. */
  anyOf(attempt: string): Request | undefined {
    return this.requests[Number(attempt.split('.', 1)[0]?.replace('gen-', ''))]
  }

  /** Whether this is the attempt that its client now waits for. */
  isSpeaker(request: Request, attempt: string): boolean {
    return request.outcome === 'open' && isCalled(request, attempt)
  }

  attempted({ attempt, group, machine, replay }: AttemptOrder & { machine: MachineId }): void {
    const request = this.requestOf(attempt)
    if (request === undefined) return
    request.speaker = { attempt, group, machine }
    request.waitingSinceMs = null
    const { received } = request
    this.#world.verdict.check(
      'S6',
      replay.length === received.length && replay.every((id, index) => id === received[index]),
      () => `${attempt} begins after ${replay.length} tokens; the client has ${received.length}`,
    )
  }

  /** Its attempt is over, whoever ended it. */
  attemptOver(attempt: AttemptId): void {
    const request = this.requestOf(attempt)
    if (request?.speaker?.attempt === attempt) request.waitingSinceMs = this.#world.nowMs
  }

  /** The one machine a stream cannot outlive. */
  gatewayLost(host: SimHost): void {
    for (const request of this.open) if (request.host === host) this.#end(request, 'gateway-lost')
  }

  #listener(request: Request): GenerationListener {
    const { verdict } = this.#world
    const name = `gen-${request.answer.number}`
    const isOver = (): boolean => request.outcome !== 'open'
    return {
      accepted: () => undefined,
      progressed: () => undefined,
      token: (token) => {
        const position = request.received.length
        const [part] = token.parts
        const text = part !== undefined && 'text' in part ? part.text : ''
        verdict.check(
          'S5',
          this.#maySpeak(request, text),
          () =>
            `${name} got token ${position} from ${text} while ${request.speaker?.attempt} was to speak`,
        )
        const expected = tokenAt(request.answer, position)
        const isNext = token.id === expected && position < request.answer.length && !isOver()
        verdict.check(
          'S6',
          isNext,
          () =>
            `${name} got ${token.id} at ${position} of ${request.answer.length}, due was ${expected}; it was ${request.outcome}`,
        )
        request.received.push(token.id)
      },
      finished: (_reason, _parts, usage) => {
        const { length } = request.answer
        verdict.check(
          'S6',
          request.received.length === length,
          () => `${name} finished after ${request.received.length} of ${length} tokens`,
        )
        verdict.check(
          'S8',
          usage.completionTokens === length && usage.promptTokens === 7,
          () =>
            `${name} was charged ${usage.completionTokens} of ${length} tokens and ${usage.promptTokens} of the prompt's 7`,
        )
        this.#terminal(request, 'finished')
      },
      failed: (error) => {
        request.failure = error.code
        const isTooLong = error.code === refusalCode
        verdict.check(
          'S7',
          isTooLong ? request.answer.isRefused : error.code !== 'attempts-exhausted',
          () => `${name} failed: ${error.code}: ${error.message}`,
        )
        this.#terminal(request, 'failed')
      },
    }
  }

  /** Only the attempt begun last, on the group it was sent to. */
  #maySpeak(request: Request, text: string): boolean {
    const [attempt = '', group] = text.split('|')
    return group === request.speaker?.group && isCalled(request, attempt)
  }

  #terminal(request: Request, outcome: 'finished' | 'failed'): void {
    request.ends += 1
    const { verdict } = this.#world
    verdict.check(
      'S7',
      request.ends === 1 && request.outcome === 'open',
      () =>
        `gen-${request.answer.number} ended ${request.ends} times, was ${request.outcome}, now ${outcome}`,
    )
    this.#end(request, outcome)
  }

  #end(request: Request, outcome: Request['outcome']): void {
    if (request.outcome !== 'open') return
    request.outcome = outcome
    this.#byGeneration.delete(`gen-${request.answer.number}`)
    const about = `gen-${request.answer.number} ${outcome} ${request.failure}`
    this.#world.tell(request.host.spec.name, 'answer', about)
  }
}

/** A machine that was asked knows the attempt by its asker too. */
function isCalled({ speaker, host }: Request, attempt: string): boolean {
  const own = speaker?.attempt ?? ''
  return attempt === own || attempt === `${own}.${host.spec.id.slice(0, 8)}`
}

/** What a daemon that died in the middle of a step still had to say never left it. */
function whileAlive(life: Life, listener: GenerationListener): GenerationListener {
  return {
    accepted: (...told) => life.isAlive && listener.accepted(...told),
    progressed: (...told) => life.isAlive && listener.progressed(...told),
    token: (token) => life.isAlive && listener.token(token),
    finished: (...told) => life.isAlive && listener.finished(...told),
    failed: (error) => life.isAlive && listener.failed(error),
  }
}
