// The network between simulated machines: connections over several links, and whatever a link can do to
// what it carries. Like the real transport it connects only machines whose rosters name each other.
import type { ClusterMessage, Heartbeat } from '../core/cluster/messages.ts'
import type { MachineId } from '../core/ids.ts'
import { limits } from '../core/limits.ts'
import type { PeerNetwork } from '../ports/peer-network.ts'
import type { GenerationMessage } from '../wire/generation-messages.ts'
import type { SimHost } from './host.ts'
import type { Life } from './life.ts'
import type { Random } from './random.ts'
import type { Schedule } from './schedule.ts'
import type { Scenario } from './scenario.ts'
import type { Trace } from './trace.ts'
import {
  type Direction,
  type Wire,
  directionFrom,
  heardAt,
  isClean,
  isOpen,
  newWire,
  noteHeard,
  otherEnd,
} from './wire.ts'

const dialEveryMs = 200
const jitterMs = 0.8
/** A broken connection is noticed by its ends about this fast. */
const resetMs = 1
const refusedDialChance = 0.3

export interface NetworkParts {
  readonly scenario: Scenario
  readonly schedule: Schedule
  readonly random: Random
  readonly trace: Trace
  readonly hosts: readonly SimHost[]
  readonly onSent: (from: SimHost, to: SimHost, message: ClusterMessage | GenerationMessage) => void
}

export class SimNetwork {
  readonly wires: readonly Wire[]
  readonly #parts: NetworkParts
  readonly #of: readonly Wire[][]
  readonly #between = new Map<number, Wire[]>()
  readonly #indexOf = new Map<MachineId, number>()
  readonly #down = new Set<Wire>()

  constructor(parts: NetworkParts) {
    this.#parts = parts
    const { scenario, schedule } = parts
    this.wires = scenario.links.map(newWire)
    this.#of = scenario.machines.map(({ index }) =>
      this.wires.filter(({ spec }) => spec.a === index || spec.b === index),
    )
    for (const { index, id } of scenario.machines) this.#indexOf.set(id, index)
    for (const wire of this.wires) {
      this.#down.add(wire)
      const key = pairKey(wire.spec.a, wire.spec.b)
      const pair = this.#between.get(key) ?? []
      pair.push(wire)
      this.#between.set(key, pair)
    }
    const dial = (): void => {
      this.#dial()
      schedule.after(dialEveryMs, dial)
    }
    dial()
  }

  wiresOf(index: number): readonly Wire[] {
    return this.#of[index] ?? []
  }

  between(a: number, b: number): readonly Wire[] {
    return this.#between.get(pairKey(a, b)) ?? []
  }

  /** Whether packets go both ways between two machines right now: what ranks' own sockets need. */
  carriesBothWays(a: number, b: number): boolean {
    return a === b || this.between(a, b).some((wire) => wire.directions.every(isOpen))
  }

  portOf(host: SimHost, life: Life): PeerNetwork {
    return {
      listen: (events) => (life.events = events),
      beat: (beat) => {
        if (life.isAlive) this.#beat(host, beat)
      },
      sendCluster: (to, message) => {
        if (life.isAlive) void this.#send(host, to, message, 'clusterMessage')
      },
      sendGeneration: (to, message) =>
        life.isAlive && this.#send(host, to, message, 'generationMessage'),
    }
  }

  /** A process ended: its sockets are closed by the system, or, without power, by nobody. */
  hostDied(index: number, closesSockets: boolean): void {
    if (closesSockets) for (const wire of this.wiresOf(index)) this.reset(wire)
  }

  /** Connections to an earlier life of this machine mean nothing to the new one. */
  hostBooted(index: number): void {
    for (const wire of this.wiresOf(index)) this.reset(wire)
  }

  /** The connection breaks; both ends hear of it if they live and the link lets a reset through. */
  reset(wire: Wire): void {
    if (!wire.isUp) return
    wire.isUp = false
    wire.session += 1
    this.#down.add(wire)
    for (const direction of wire.directions) direction.waiting.length = 0
    for (const end of [wire.spec.a, wire.spec.b]) {
      const host = this.#host(end)
      const { life } = host
      const peer = this.#host(otherEnd(wire, end)).spec.id
      if (life === null) continue
      this.#parts.schedule.after(resetMs, () =>
        host.receive(life, () => life.events?.linkLost(peer, wire.spec.name)),
      )
    }
  }

  /** Whoever a machine no longer trusts is shut out. */
  reviewTrust(host: SimHost): void {
    for (const wire of this.wiresOf(host.spec.index)) {
      const other = this.#host(otherEnd(wire, host.spec.index))
      if (!wire.isUp || host.trusts(other.spec.id)) continue
      // Closed at once: what the machine still had to say here is lost, the evidence is the last frame.
      this.reset(wire)
      this.#showEvidence(wire, host, other)
    }
  }

  /** What was held back by a clog flows again, in order. */
  release(direction: Direction): void {
    if (!isOpen(direction)) return
    for (const arrive of direction.waiting.splice(0)) arrive()
  }

  #dial(): void {
    for (const wire of this.#down) {
      const { a, b } = wire.spec
      const [one, other] = [this.#host(a), this.#host(b)]
      if (!one.isRunning || !other.isRunning || !wire.directions.every(isOpen)) continue
      const [trusts, isTrusted] = [one.trusts(other.spec.id), other.trusts(one.spec.id)]
      if (!trusts || !isTrusted) {
        // Whoever calls and is shut out is shown why; callers that were refused wait before the next try.
        if (trusts !== isTrusted && this.#parts.random.chance(refusedDialChance))
          this.#showEvidence(wire, trusts ? other : one, trusts ? one : other)
        continue
      }
      if (this.#parts.random.chance(0.3)) continue
      wire.isUp = true
      wire.session += 1
      const { nowMs } = this.#parts.schedule
      wire.heardMs[0] = nowMs
      wire.heardMs[1] = nowMs
      this.#down.delete(wire)
    }
  }

  #showEvidence(wire: Wire, by: SimHost, to: SimHost): void {
    const entries = by.evidenceFor(to.spec.id)
    const { life } = to
    if (entries.length === 0 || life === null) return
    const { schedule, trace } = this.#parts
    this.#carry(wire, by.spec.index, () => {
      trace.tell(schedule.nowMs, to.spec.name, `< ${by.spec.name}`, 'evidence')
      to.receive(life, () =>
        life.events?.clusterMessage(by.spec.id, { kind: 'registers', entries }),
      )
    })
  }

  #beat(from: SimHost, beat: Heartbeat): void {
    const { schedule, random } = this.#parts
    const { index } = from.spec
    const clean: Wire[] = []
    const sessions: number[] = []
    for (const wire of this.wiresOf(index)) {
      if (!wire.isUp) continue
      const direction = directionFrom(wire, index)
      if (isClean(direction) && direction.lastArrivalMs <= schedule.nowMs) {
        clean.push(wire)
        sessions.push(wire.session)
      } else {
        this.#carry(wire, index, () => this.#beatArrives(wire, index, beat))
      }
    }
    if (clean.length === 0) return
    // Undisturbed links deliver alike: one event for all of them keeps a wide cluster cheap.
    schedule.after(1 + random.fraction() * jitterMs, () => {
      for (const [at, wire] of clean.entries()) {
        if (wire.session === sessions[at] && isOpen(directionFrom(wire, index)))
          this.#beatArrives(wire, index, beat)
      }
    })
  }

  #beatArrives(wire: Wire, from: number, beat: Heartbeat): void {
    const { schedule, trace } = this.#parts
    const to = this.#host(otherEnd(wire, from))
    const { life } = to
    if (life === null || to.isAsleep) return
    trace.beat(schedule.nowMs, from, to.spec.index)
    const sender = this.#host(from).spec.id
    to.receive(life, () => {
      noteHeard(wire, to.spec.index, schedule.nowMs)
      life.events?.heartbeat(sender, wire.spec.name, beat)
    })
  }

  #send<Message extends ClusterMessage | GenerationMessage>(
    from: SimHost,
    toId: MachineId,
    message: Message,
    door: Message extends ClusterMessage ? 'clusterMessage' : 'generationMessage',
  ): boolean {
    const index = this.#indexOf.get(toId)
    if (index === undefined) return false
    const to = this.#host(index)
    const wire = this.#best(from.spec.index, index)
    if (wire === null) return false
    const { schedule, trace, scenario, onSent } = this.#parts
    onSent(from, to, message)
    // Some runs turn every message into text and back, as the wire would.
    const carried = scenario.serialises ? (JSON.parse(JSON.stringify(message)) as Message) : message
    this.#carry(wire, from.spec.index, () => {
      const { life } = to
      if (life === null) return
      trace.tell(schedule.nowMs, to.spec.name, `< ${from.spec.name}`, about(message))
      to.receive(life, () => {
        noteHeard(wire, index, schedule.nowMs)
        const deliver = life.events?.[door]
        deliver?.(from.spec.id, carried as never)
      })
    })
    return true
  }

  /** The link heard most lately, the fastest of those that are well. */
  #best(from: number, to: number): Wire | null {
    const { nowMs } = this.#parts.schedule
    let best: Wire | null = null
    let bestCost = Infinity
    for (const wire of this.between(from, to)) {
      if (!wire.isUp) continue
      const silent = nowMs - heardAt(wire, from) > limits.suspectAfterMs ? 1e6 : 0
      const cost = silent + wire.spec.delayMs
      if (cost >= bestCost) continue
      best = wire
      bestCost = cost
    }
    return best
  }

  /** Takes one frame over a link, with all that can happen to it on the way. */
  #carry(wire: Wire, from: number, arrive: () => void): void {
    const { random } = this.#parts
    const direction = directionFrom(wire, from)
    if (direction.cuts > 0) return
    if (direction.loss > 0 && random.chance(direction.loss)) return
    if (direction.corruption > 0 && random.chance(direction.corruption)) {
      // A broken record ends a TLS connection; what was in it is never delivered.
      this.#parts.schedule.after(resetMs, () => this.reset(wire))
      return
    }
    const copies = direction.duplication > 0 && random.chance(direction.duplication) ? 2 : 1
    for (let copy = 0; copy < copies; copy++) this.#transmit(wire, from, arrive)
  }

  #transmit(wire: Wire, from: number, arrive: () => void): void {
    const { schedule, random } = this.#parts
    const direction = directionFrom(wire, from)
    const { session } = wire
    const land = (): void => {
      if (wire.session !== session || direction.cuts > 0) return
      if (direction.clogs > 0) direction.waiting.push(land)
      else arrive()
    }
    if (direction.clogs > 0) {
      direction.waiting.push(land)
      return
    }
    const spread = direction.isReordering ? 400 : jitterMs
    const delayMs = wire.spec.delayMs + direction.extraDelayMs + random.fraction() * spread
    let atMs = schedule.nowMs + delayMs
    if (!direction.isReordering) {
      atMs = Math.max(atMs, direction.lastArrivalMs)
      direction.lastArrivalMs = atMs
    }
    schedule.at(atMs, land)
  }

  #host(index: number): SimHost {
    return this.#parts.hosts[index] as SimHost
  }
}

function pairKey(a: number, b: number): number {
  return Math.min(a, b) * 1024 + Math.max(a, b)
}

function about(message: ClusterMessage | GenerationMessage): string {
  if ('attempt' in message) return `${message.kind} ${message.attempt}`
  if ('plan' in message) return `${message.kind} ${message.plan.group}`
  if (message.kind === 'group-stop')
    return `${message.kind} ${message.group} ${message.drain ? 'gently' : 'now'}: ${message.reason}`
  if ('group' in message) return `${message.kind} ${message.group}`
  if (message.kind === 'record') return `record ${message.record.revision}`
  return message.kind
}
