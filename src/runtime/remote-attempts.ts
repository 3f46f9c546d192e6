// Attempts of this gateway on other machines: the asking end of the token path between machines.
import type { AttemptId, MachineId } from '../core/ids.ts'
import type { Token } from '../core/serving/request.ts'
import type { Clock } from '../ports/clock.ts'
import type { AttemptMessage } from '../wire/generation-messages.ts'
import type { AttemptHost, AttemptOrder, AttemptSink } from './attempts.ts'
import { planted } from '../core/planted.ts'

type Send = (to: MachineId, message: AttemptMessage) => boolean

interface Remote {
  readonly machine: MachineId
  readonly sink: AttemptSink
  next: number
  heardMs: number
  /** When it was last asked to repeat itself. */
  resyncedMs: number
}

/** Silence this long on a living machine may be a frame lost with a link: asking costs little. */
const quietMs = 2000
const lookEveryMs = 1000
/** One lost frame shows in every later one; one request for it is enough. */
const resyncEveryMs = 250
/** Whoever says one of these works on an attempt, or is about to. */
const workingWords: ReadonlySet<AttemptMessage['kind']> = new Set([
  'attempt-accepted',
  'attempt-progressed',
  'attempt-token',
])

export class RemoteAttempts {
  readonly #send: Send
  readonly #clock: Clock
  readonly #remote = new Map<AttemptId, Remote>()

  constructor(parts: { send: Send; clock: Clock }) {
    this.#send = parts.send
    this.#clock = parts.clock
    parts.clock.every(lookEveryMs, () => this.#askQuietOnes())
  }

  hostOn(machine: MachineId): AttemptHost {
    return {
      submit: (order, sink) => this.#submit(machine, order, sink),
      cancel: (attempt) => {
        if (planted.missingFence) return
        if (this.#remote.delete(attempt) && !planted.fencedWorksOn)
          this.#send(machine, { kind: 'attempt-cancel', attempt })
      },
    }
  }

  #submit(machine: MachineId, order: AttemptOrder, sink: AttemptSink): void {
    const { attempt, group, question, replay, alone = false } = order
    const remote = { machine, sink, next: replay.length, resyncedMs: -Infinity }
    this.#remote.set(attempt, { ...remote, heardMs: this.#clock.nowMs() })
    const message = {
      kind: 'attempt-submit',
      attempt,
      group,
      question,
      replay,
      alone,
    } as unknown as AttemptMessage
    if (this.#send(machine, message)) return
    this.#remote.delete(attempt)
    sink.lost(`no link to machine ${machine.slice(0, 8)}… is up`)
  }

  take(from: MachineId, message: AttemptMessage): void {
    // Looked up, never parsed: what another machine calls its attempts cannot throw here.
    const attempt = message.attempt as AttemptId
    const remote = this.#remote.get(attempt)
    if (remote === undefined) {
      this.#tellNobodyWaits(from, message)
      return
    }
    // Only the machine that was asked may answer.
    if (remote.machine !== from && !planted.anyoneAnswers) return
    remote.heardMs = this.#clock.nowMs()
    const { sink } = remote
    switch (message.kind) {
      case 'attempt-accepted':
        sink.accepted(message.promptTokens, message.cachedTokens)
        return
      case 'attempt-progressed':
        if (message.pause === undefined) sink.progressed(message.done, message.total)
        else sink.paused(message.pause)
        return
      case 'attempt-token':
        this.#takeToken(remote, message)
        return
      case 'attempt-finished':
        if (message.end > remote.next && !planted.endTakenEarly) {
          this.#resyncSoon(attempt, remote)
          return
        }
        this.#remote.delete(attempt)
        sink.finished(message.reason, message.parts, message.usage)
        return
      case 'attempt-refused':
        this.#remote.delete(attempt)
        sink.refused({ code: message.code, message: message.message })
        return
      case 'attempt-lost':
        this.#remote.delete(attempt)
        sink.lost(message.cause, message.crash)
        return
      case 'attempt-submit':
      case 'attempt-cancel':
      case 'attempt-resync':
        return
    }
  }

  /** The word that it was given up got lost: whoever still works on an attempt hears it again. */
  #tellNobodyWaits(from: MachineId, { kind, attempt }: AttemptMessage): void {
    if (!workingWords.has(kind)) return
    if (!planted.fencedWorksOn) this.#send(from, { kind: 'attempt-cancel', attempt })
  }

  #takeToken(remote: Remote, message: Extract<AttemptMessage, { kind: 'attempt-token' }>): void {
    if (message.position < remote.next && !planted.positionUnchecked) return
    if (message.position > remote.next && !planted.positionUnchecked) {
      // Something was lost on the way; nothing after it counts until it is here.
      this.#resyncSoon(message.attempt as AttemptId, remote)
      return
    }
    remote.next += 1
    remote.sink.token(message.position, message.token as Token)
  }

  /** A link to this machine broke: whatever was on it is asked for again over another. */
  linkLost(machine: MachineId): void {
    for (const [attempt, remote] of this.#remote)
      if (remote.machine === machine) this.#resync(attempt, remote)
  }

  loseMachine(machine: MachineId, cause: string): void {
    for (const [attempt, remote] of this.#remote) {
      if (remote.machine !== machine) continue
      if (!planted.missingFence) this.#remote.delete(attempt)
      remote.sink.lost(cause)
    }
  }

  #askQuietOnes(): void {
    const nowMs = this.#clock.nowMs()
    for (const [attempt, remote] of this.#remote) {
      if (nowMs - remote.heardMs < quietMs) continue
      remote.heardMs = nowMs
      this.#resync(attempt, remote)
    }
  }

  #resyncSoon(attempt: AttemptId, remote: Remote): void {
    if (this.#clock.nowMs() - remote.resyncedMs >= resyncEveryMs) this.#resync(attempt, remote)
  }

  #resync(attempt: AttemptId, remote: Remote): void {
    remote.resyncedMs = this.#clock.nowMs()
    this.#send(remote.machine, { kind: 'attempt-resync', attempt, position: remote.next })
  }
}
