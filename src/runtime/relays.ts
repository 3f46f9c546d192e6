// Words between ranks of one group, carried by their agents over the trusted path. Every rank hears another's
// in the order they were said, each once, though links break and messages repeat: they are numbered, kept
// until they are acknowledged, and said again.
import type { GroupId, MachineId } from '../core/ids.ts'
import { limits } from '../core/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { RelayMessage } from '../wire/generation-messages.ts'
import { planted } from '../core/planted.ts'

export type RelayBody = Record<string, unknown>

/** A rank in one formation of its group. */
export interface RelayTarget {
  readonly group: GroupId
  readonly formation: number
  readonly rank: number
}

export interface RelayPorts {
  readonly clock: Clock
  readonly send: (to: MachineId, message: RelayMessage) => void
  /** Hands a word to a rank here; false when that rank is not here. */
  readonly deliver: (to: RelayTarget, from: number, body: RelayBody) => boolean
  /** A rank can no longer be told what it must know; its group cannot go on. */
  readonly giveUp: (group: GroupId, cause: string) => void
}

interface Outgoing {
  readonly machine: MachineId
  readonly group: GroupId
  readonly formation: number
  readonly from: number
  readonly to: number
  next: number
  readonly unheard: { readonly number: number; readonly body: RelayBody; saidMs: number }[]
}

interface Incoming {
  next: number
  readonly early: Map<number, RelayBody>
}

export class Relays {
  readonly #ports: RelayPorts
  readonly #outgoing = new Map<string, Outgoing>()
  readonly #incoming = new Map<string, Incoming>()

  constructor(ports: RelayPorts) {
    this.#ports = ports
    ports.clock.every(limits.relayRepeatMs, () => this.#repeat())
  }

  /** Says something to a rank on another machine. */
  say(word: {
    machine: MachineId
    group: GroupId
    formation: number
    from: number
    to: number
    body: RelayBody
  }): void {
    const { machine, group, formation, from, to, body } = word
    const key = channel(word)
    const known = this.#outgoing.get(key)
    const out = known ?? { machine, group, formation, from, to, next: 0, unheard: [] }
    this.#outgoing.set(key, out)
    const number = out.next
    out.next += 1
    out.unheard.push({ number, body, saidMs: this.#ports.clock.nowMs() })
    if (out.unheard.length > limits.relayWaitingMax) {
      this.#ports.giveUp(group, `rank ${to} has not heard ${out.unheard.length} operations`)
      return
    }
    this.#ports.send(machine, { kind: 'rank-relay', group, formation, from, to, number, body })
  }

  take(sender: MachineId, message: RelayMessage): void {
    if (message.kind === 'rank-relay') this.#hear(sender, message)
    else this.#acknowledge(message)
  }

  /** The group is gone from this machine: nothing about it will be said or heard again. */
  forget(group: GroupId): void {
    for (const key of [...this.#outgoing.keys(), ...this.#incoming.keys()]) {
      if (!key.startsWith(`${group} `)) continue
      this.#outgoing.delete(key)
      this.#incoming.delete(key)
    }
  }

  #hear(sender: MachineId, message: Extract<RelayMessage, { kind: 'rank-relay' }>): void {
    const group = message.group as GroupId
    const { formation = 0, from, to } = message
    const key = channel({ group, formation, from, to })
    const known = this.#incoming.get(key)
    const incoming = known ?? { next: 0, early: new Map<number, RelayBody>() }
    if (message.number >= incoming.next + limits.relayWaitingMax) return
    if (planted.relayUnordered) {
      this.#ports.deliver({ group, formation, rank: to }, from, message.body)
      return
    }
    if (message.number >= incoming.next) incoming.early.set(message.number, message.body)
    for (;;) {
      const body = incoming.early.get(incoming.next)
      // Not acknowledged while the rank is not here to hear it.
      if (body === undefined || !this.#ports.deliver({ group, formation, rank: to }, from, body))
        break
      incoming.early.delete(incoming.next)
      incoming.next += 1
      this.#incoming.set(key, incoming)
    }
    const { next } = incoming
    if (next > 0)
      this.#ports.send(sender, { kind: 'rank-relay-ack', group, formation, from, to, next })
  }

  #acknowledge(message: Extract<RelayMessage, { kind: 'rank-relay-ack' }>): void {
    const { formation = 0, from, to, next } = message
    const group = message.group as GroupId
    const out = this.#outgoing.get(channel({ group, formation, from, to }))
    while (out?.unheard[0] !== undefined && out.unheard[0].number < next) out.unheard.shift()
  }

  #repeat(): void {
    const nowMs = this.#ports.clock.nowMs()
    for (const { machine, group, formation, from, to, unheard } of this.#outgoing.values()) {
      for (const word of unheard) {
        if (nowMs - word.saidMs < limits.relayRepeatMs) break
        word.saidMs = nowMs
        const { number, body } = word
        this.#ports.send(machine, { kind: 'rank-relay', group, formation, from, to, number, body })
      }
    }
  }
}

function channel(between: { group: GroupId; formation: number; from: number; to: number }): string {
  const { group, formation, from, to } = between
  return `${group} ${formation} ${from} ${to}`
}
