// Generations of this gateway: each is a pure state machine whose actions are performed here. Between
// the worker's frame and the client's socket there is one hop per machine and nothing else.
import { assertNever } from '../core/assert.ts'
import {
  type AttemptId,
  type GenerationId,
  type GroupId,
  type MachineId,
  generationId,
} from '../core/ids.ts'
import {
  type Generation,
  type GenerationAction,
  type GenerationInput,
  type GenerationStep,
  advanceGeneration,
  beginGeneration,
} from '../core/serving/generation.ts'
import { type GenerationReport, reportOf } from '../core/serving/report.ts'
import type { Route, RouteKnowledge } from '../core/serving/routing.ts'
import type {
  FinishReason,
  GenerationError,
  GenerationRequest,
  Part,
  Question,
  Token,
  Usage,
} from '../core/serving/request.ts'
import type { DeploymentId } from '../core/ids.ts'
import { limits } from '../core/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { Entropy } from '../ports/entropy.ts'
import type { AttemptHost, AttemptSink } from './attempts.ts'
import { planted } from '../core/planted.ts'
import { GenerationLog } from './generation-log.ts'
import { RecentPrefixes } from './recent-prefixes.ts'

/** Who reads the answer. Exactly one of finished and failed ends it. */
export interface GenerationListener {
  accepted(promptTokens: number, cachedTokens: number): void
  progressed(done: number, total: number): void
  token(token: Token): void
  finished(reason: FinishReason, parts: readonly Part[], usage: Usage): void
  failed(error: GenerationError): void
}

export interface GenerationPorts {
  readonly clock: Clock
  readonly entropy: Entropy
  /** The best ready group now, given how busy this gateway keeps each; null when there is none. */
  readonly route: (deployment: DeploymentId, known: RouteKnowledge) => Route | null
  /** What a waiting generation waits for, in words. */
  readonly waitingFor: (deployment: DeploymentId) => string
  /** "removed" only by an explicit wish; a deployment that is merely not known yet is "absent". */
  readonly standingOf: (deployment: DeploymentId) => 'wanted' | 'removed' | 'absent'
  readonly hostOn: (machine: MachineId) => AttemptHost
  /** Why a deployment can never be started as things stand; null while there is hope. */
  readonly whyNoRoom: (deployment: DeploymentId) => string | null
  /** Takes back a wish that was denied. */
  readonly withdraw: (deployment: DeploymentId) => void
}

interface Live {
  generation: Generation
  /** Asked for on demand it may be waiting for a deployment whose old tombstone is still in force. */
  wasWanted: boolean
  readonly listener: GenerationListener
  readonly label: string | null
  readonly startedMs: number
  /** What the groups were like that have had a part in it: equal ones say the same after a resume. */
  readonly makes: Set<string>
  outcome: string
}

export class Generations {
  readonly #ports: GenerationPorts
  readonly #live = new Map<GenerationId, Live>()
  readonly #load = new Map<GroupId, number>()
  readonly #lately = new RecentPrefixes()
  #isLooking = false
  readonly log = new GenerationLog()

  constructor(ports: GenerationPorts) {
    this.#ports = ports
  }

  /** Starts answering; returns how to give up. */
  begin(
    asked: { deployment: DeploymentId; question: Question; id?: GenerationId; label?: string },
    listener: GenerationListener,
  ): { id: GenerationId; cancel: () => void } {
    const id = asked.id ?? generationId(`gen-${this.#ports.entropy.hex(12)}`)
    const request: GenerationRequest = {
      id,
      deployment: asked.deployment,
      question: asked.question,
    }
    const startedMs = this.#ports.clock.nowMs()
    const step = beginGeneration(request, startedMs)
    const wasWanted = this.#ports.standingOf(asked.deployment) === 'wanted'
    const live: Live = {
      generation: step.generation,
      wasWanted,
      listener,
      label: asked.label ?? null,
      startedMs,
      makes: new Set(),
      outcome: 'gone',
    }
    this.#live.set(id, live)
    this.#perform(live, step)
    return { id, cancel: () => this.#advance(live, { kind: 'client-gone' }) }
  }

  /** By its own id or the client's; newest first when none is named. */
  reports(): readonly GenerationReport[] {
    const going = [...this.#live.values()].map((live) => this.#reportOf(live, null))
    return [...going.toReversed(), ...this.log.list()]
  }

  #reportOf(live: Live, endedMs: number | null): GenerationReport {
    const { label, startedMs, outcome, makes } = live
    return reportOf(live.generation, {
      label,
      startedMs,
      endedMs,
      outcome: endedMs === null ? null : outcome,
      exact: makes.size <= 1 && ![...makes].some((make) => make.includes('darwin')),
    })
  }

  get liveCount(): number {
    return this.#live.size
  }

  /** The cluster changed: those who wait ask again. */
  offer(): void {
    const denied = new Map<DeploymentId, string | null>()
    for (const live of this.#live.values()) {
      if (live.generation.phase !== 'waiting') continue
      if (planted.requestForgotten && live.generation.attemptsMade > 0) continue
      const { waitingSinceMs, request } = live.generation
      const standing = this.#ports.standingOf(request.deployment)
      live.wasWanted ||= standing === 'wanted'
      if (standing === 'removed' && live.wasWanted) {
        this.#advance(live, { kind: 'deployment-removed' })
        continue
      }
      const noRoom = this.#whyNoRoom(live.generation, denied)
      if (noRoom !== null) {
        this.#advance(live, { kind: 'room-denied', reason: noRoom })
        continue
      }
      const expired = this.#ports.clock.nowMs() - waitingSinceMs >= limits.readyWaitMsMax
      // The reason is worked out only when it is about to be told.
      const waitedFor = expired ? this.#ports.waitingFor(request.deployment) : ''
      this.#advance(live, { kind: 'wait-checked', waitedFor })
    }
    for (const [deployment, reason] of denied) if (reason !== null) this.#ports.withdraw(deployment)
  }

  /** Only for what has never begun: an answer that lost its group waits for the group. */
  #whyNoRoom(
    { attemptsMade, waitingSinceMs, request }: Generation,
    known: Map<DeploymentId, string | null>,
  ): string | null {
    const waitedMs = this.#ports.clock.nowMs() - waitingSinceMs
    if (attemptsMade > 0 || waitedMs < limits.roomWaitMsMax) return null
    const { deployment } = request
    if (!known.has(deployment)) known.set(deployment, this.#ports.whyNoRoom(deployment))
    return known.get(deployment) ?? null
  }

  /** Ends every generation with an error that says why: the daemon is stopping. */
  failAll(error: GenerationError): void {
    for (const live of this.#live.values()) {
      this.#advance(live, { kind: 'client-gone' })
      live.listener.failed(error)
    }
  }

  #advance(live: Live, input: GenerationInput): void {
    this.#perform(live, advanceGeneration(live.generation, input, this.#ports.clock.nowMs()))
  }

  #perform(live: Live, step: GenerationStep): void {
    const before = live.generation.attempt
    live.generation = step.generation
    const after = step.generation.attempt
    if (before !== null && before !== after) this.#addLoad(before.group, -1)
    if (after !== null && before !== after) this.#addLoad(after.group, 1)
    for (const action of step.actions) this.#act(live, action)
    if (step.generation.phase === 'ended') this.#bury(live)
    else if (live.generation.phase === 'waiting') this.#lookAgain()
  }

  /** A quiet cluster gives no occasion to ask again: a group that was avoided for a moment must not be for ever. */
  #lookAgain(): void {
    if (this.#isLooking) return
    this.#isLooking = true
    this.#ports.clock.after(limits.attemptRetryMs + 50, () => {
      this.#isLooking = false
      this.offer()
      const isWaiting = [...this.#live.values()].some((live) => live.generation.phase === 'waiting')
      if (isWaiting) this.#lookAgain()
    })
  }

  /** Its report is kept; a step within a step may have buried it already. */
  #bury(live: Live): void {
    if (!this.#live.delete(live.generation.request.id)) return
    this.log.add(this.#reportOf(live, this.#ports.clock.nowMs()))
  }

  #addLoad(group: GroupId, change: number): void {
    const load = (this.#load.get(group) ?? 0) + change
    if (load > 0) this.#load.set(group, load)
    else this.#load.delete(group)
  }

  #act(live: Live, action: GenerationAction): void {
    const { listener, generation } = live
    switch (action.kind) {
      case 'group-ask': {
        const route = this.#ports.route(generation.request.deployment, {
          load: this.#load,
          avoid: action.avoid,
          familiar: this.#lately.groupFor(generation.request),
        })
        if (route === null) return
        live.makes.add(route.make)
        this.#lately.remember(generation.request, route.group)
        const { group, machine } = route
        this.#advance(live, { kind: 'group-offered', group, machine })
        return
      }
      case 'attempt-start': {
        const { id: attempt, group, machine } = action.attempt
        const { question } = generation.request
        const order = { attempt, group, question, replay: action.replay, alone: action.alone }
        this.#ports.hostOn(machine).submit(order, this.#sinkFor(live, attempt))
        return
      }
      case 'attempt-cancel':
        this.#ports.hostOn(action.attempt.machine).cancel(action.attempt.id)
        return
      case 'client-accept':
        listener.accepted(action.promptTokens, action.cachedTokens)
        return
      case 'client-token':
        listener.token(action.token)
        return
      case 'client-finish':
        live.outcome = 'finished'
        listener.finished(action.reason, action.parts, action.usage)
        return
      case 'client-fail':
        live.outcome = action.error.code
        listener.failed(action.error)
        return
      default:
        assertNever(action)
    }
  }

  #sinkFor(live: Live, attempt: AttemptId): AttemptSink {
    const advance = (input: GenerationInput): void => this.#advance(live, input)
    return {
      accepted: (promptTokens, cachedTokens) =>
        advance({ kind: 'attempt-accepted', attempt, promptTokens, cachedTokens }),
      progressed: (done, total) => {
        if (live.generation.attempt?.id === attempt) live.listener.progressed(done, total)
      },
      paused: (pause) => advance({ kind: 'attempt-paused', attempt, pause }),
      token: (position, token) => advance({ kind: 'token-received', attempt, position, token }),
      finished: (reason, parts, usage) =>
        advance({ kind: 'attempt-finished', attempt, reason, parts, usage }),
      refused: (error) => advance({ kind: 'attempt-refused', attempt, error }),
      lost: (cause, crash) =>
        advance({
          kind: 'attempt-lost',
          attempt,
          cause,
          ...(crash === undefined ? {} : { crash }),
        }),
    }
  }
}
