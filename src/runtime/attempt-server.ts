// Attempts that other machines run on ranks here. What was sent is kept until the asker has it, so that a
// link lost in the middle costs a repetition and not the answer.
import type { AttemptId, GroupId, MachineId } from '../core/ids.ts'
import type { Question, Token } from '../core/serving/request.ts'
import type { Clock } from '../ports/clock.ts'
import type { AttemptMessage } from '../wire/generation-messages.ts'
import type { AttemptHost, AttemptSink } from './attempts.ts'

type Send = (to: MachineId, message: AttemptMessage) => void

interface Served {
  readonly from: MachineId
  readonly attempt: string
  /** Position of the first token of this attempt: what came before was replayed. */
  readonly start: number
  readonly tokens: Token[]
  accepted: AttemptMessage | null
  terminal: AttemptMessage | null
}

/** A finished attempt can be asked for again this long. */
const keptMs = 60_000

export class AttemptServer {
  readonly #host: AttemptHost
  readonly #send: Send
  readonly #clock: Clock
  readonly #served = new Map<string, Served>()

  constructor(parts: { host: AttemptHost; send: Send; clock: Clock }) {
    this.#host = parts.host
    this.#send = parts.send
    this.#clock = parts.clock
  }

  take(from: MachineId, message: AttemptMessage): void {
    if (message.kind === 'attempt-submit') this.#submit(from, message)
    else if (message.kind === 'attempt-cancel') this.#cancel(from, message.attempt)
    else if (message.kind === 'attempt-resync') this.#resync(from, message)
  }

  /** The asker is dead: nobody reads what its attempts still say. */
  loseMachine(machine: MachineId): void {
    for (const served of this.#served.values())
      if (served.from === machine) this.#cancel(machine, served.attempt)
  }

  #submit(from: MachineId, message: Extract<AttemptMessage, { kind: 'attempt-submit' }>): void {
    const { attempt, replay } = message
    const key = keyOf(from, attempt)
    // Submitted twice over two links: the first one is already being answered.
    if (this.#served.has(key)) return
    const served: Served = {
      from,
      attempt,
      start: replay.length,
      tokens: [],
      accepted: null,
      terminal: null,
    }
    this.#served.set(key, served)
    const order = {
      attempt: localId(from, attempt),
      group: message.group as GroupId,
      question: message.question as unknown as Question,
      replay,
      alone: message.alone ?? false,
    }
    this.#host.submit(order, this.#sinkFor(served))
  }

  #sinkFor(served: Served): AttemptSink {
    const { from, attempt } = served
    const say = (message: AttemptMessage): void => this.#send(from, message)
    const end = (message: AttemptMessage): void => {
      served.terminal = message
      say(message)
      this.#clock.after(keptMs, () => this.#served.delete(keyOf(from, attempt)))
    }
    return {
      accepted: (promptTokens, cachedTokens) => {
        served.accepted = { kind: 'attempt-accepted', attempt, promptTokens, cachedTokens }
        say(served.accepted)
      },
      progressed: (done, total) => say({ kind: 'attempt-progressed', attempt, done, total }),
      paused: (pause) => say({ kind: 'attempt-progressed', attempt, done: 1, total: 1, pause }),
      token: (position, token) => {
        served.tokens.push(token)
        say(tokenMessage(attempt, position, token))
      },
      finished: (reason, parts, usage) =>
        end({
          kind: 'attempt-finished',
          attempt,
          reason,
          parts: [...parts],
          usage,
          end: served.start + served.tokens.length,
        }),
      refused: ({ code, message }) => end({ kind: 'attempt-refused', attempt, code, message }),
      lost: (cause, crash) =>
        end({ kind: 'attempt-lost', attempt, cause, ...(crash === undefined ? {} : { crash }) }),
    }
  }

  #cancel(from: MachineId, attempt: string): void {
    if (!this.#served.delete(keyOf(from, attempt))) return
    this.#host.cancel(localId(from, attempt))
  }

  /** The asker goes elsewhere on this word: an order that was held up on its way must not be taken up later. */
  #disown(from: MachineId, attempt: string): void {
    const unknown = { from, attempt, start: 0, tokens: [], accepted: null, terminal: null }
    this.#served.set(keyOf(from, attempt), unknown)
    this.#sinkFor(unknown).lost('the machine no longer knows this attempt')
  }

  #resync(from: MachineId, { attempt, position }: { attempt: string; position: number }): void {
    const served = this.#served.get(keyOf(from, attempt))
    if (served === undefined) {
      this.#disown(from, attempt)
      return
    }
    if (served.accepted !== null) this.#send(from, served.accepted)
    for (const [index, token] of served.tokens.entries()) {
      const at = served.start + index
      if (at >= position) this.#send(from, tokenMessage(attempt, at, token))
    }
    if (served.terminal !== null) this.#send(from, served.terminal)
  }
}

function tokenMessage(attempt: string, position: number, token: Token): AttemptMessage {
  return { kind: 'attempt-token', attempt, position, token: token as never }
}

function keyOf(from: MachineId, attempt: string): string {
  return `${from}/${attempt}`
}

/** Two gateways may count their attempts alike; on this machine the asker's id keeps them apart. */
function localId(from: MachineId, attempt: string): AttemptId {
  return `${attempt}.${from.slice(0, 8)}` as AttemptId
}
