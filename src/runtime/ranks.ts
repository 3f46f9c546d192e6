// Keeps the rank processes of this machine: starts, drains and ends them as the agent decides, and
// sorts what they say into news for the loop and tokens for the attempts.
import { type GroupPlan, placedRanks } from '../core/cluster/group-plan.ts'
import type { GroupId } from '../core/ids.ts'
import type { MachineInput, RankProgress, RankReport } from '../core/machine/inputs.ts'
import { holdingKey } from '../core/cluster/state.ts'
import type { Effect } from '../core/effects.ts'
import type { ModelDigest } from '../core/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { EndpointOutcome, EndpointSource } from '../ports/endpoint-source.ts'
import type { RankLauncher, RankProcess } from '../ports/rank-launcher.ts'
import type { FrameFromWorker, FrameToWorker } from '../wire/worker-frames.ts'
import { type AttemptFrame, LocalAttempts } from './attempts.ts'
import { type ModelFiles, type RankStart, loadFrameFor, relinkFrameFor } from './load-frame.ts'
import type { Notes, RankKeeper } from './machine.ts'
import type { RelayBody, RelayTarget, Relays } from './relays.ts'

/** Where words between ranks come in and go out. */
export interface RelayEnd {
  relayThrough(relays: Pick<Relays, 'say' | 'forget'>): void
  /** False when that rank is not up here. */
  hearRelay(to: RelayTarget, from: number, body: RelayBody): boolean
  failGroup(group: GroupId, cause: string): void
}

interface Kept {
  plan: GroupPlan
  readonly group: GroupId
  readonly rank: number
  process: RankProcess | null
  ready: boolean
  draining: boolean
  /** It gave a reason that lies outside of it, or was told to go. */
  explained: boolean
  drained: boolean
  /** Counts frames that prove progress; a hung engine stops counting. */
  progressed: number
  lastFrameMs: number
  busy: boolean
  tokens: number
  /** As it last said itself. */
  steps: number
  tokensPerSecond: number
  activeBytes: number
}

export interface RankSupervisorPorts {
  readonly clock: Clock
  readonly launcher: RankLauncher
  readonly filesOf: (digest: ModelDigest) => ModelFiles | null
  /** Absent where groups of several ranks are not served. */
  readonly endpoints?: EndpointSource & Partial<Pick<Required<RankStart>, 'dialable'>>
  readonly post: (input: MachineInput) => void
  readonly notes: Notes
}

/** Reasons of a failing rank that lie in another rank, its link or its set-up. */
const explainedCodes: ReadonlySet<string> = new Set([
  'peer-lost',
  'peer-timeout',
  'group-mismatch',
  'port-taken',
])

export class RankSupervisor implements RankKeeper, RelayEnd {
  readonly #ports: RankSupervisorPorts
  readonly #kept = new Map<string, Kept>()
  readonly attempts: LocalAttempts
  #relays: Pick<Relays, 'say' | 'forget'> | null = null

  constructor(ports: RankSupervisorPorts) {
    this.#ports = ports
    this.attempts = new LocalAttempts(
      (group) => this.#head(group),
      () => ports.clock.nowMs(),
    )
  }

  perform(effect: Parameters<RankKeeper['perform']>[0]): void {
    if (effect.kind === 'rank-start') this.#start(effect)
    else if (effect.kind === 'rank-relink') this.#relink(effect)
    else if (effect.kind === 'endpoints-reserve') this.#reserveEndpoints(effect)
    else {
      const kept = this.#kept.get(holdingKey(effect.group, effect.rank))
      if (kept === undefined) return
      if (effect.kind === 'rank-drain') {
        kept.draining = true
        this.#endIfDrained(kept)
      } else {
        kept.explained = true
        kept.process?.signal(effect.signal)
      }
    }
  }

  progress(): readonly RankProgress[] {
    const nowMs = this.#ports.clock.nowMs()
    return [...this.#kept.values()].map((kept) => ({
      ...this.#useOf(kept),
      group: kept.group,
      rank: kept.rank,
      step: kept.progressed,
      busy: kept.ready && (kept.busy || (kept.rank === 0 && this.attempts.countOf(kept.group) > 0)),
      frameAgeMs: nowMs - kept.lastFrameMs,
      tokens: kept.tokens,
      tokensPerSecond: kept.tokensPerSecond,
      activeBytes: kept.activeBytes,
      queue: kept.rank === 0 ? this.attempts.countOf(kept.group) : 0,
    }))
  }

  #useOf({ rank, group }: Kept): { usedMs?: number } {
    const usedMs = rank === 0 ? this.attempts.lastUsedMs(group) : null
    return usedMs === null ? {} : { usedMs }
  }

  /** Pids of ranks that still live, for the daemon's last look around. */
  livePids(): readonly number[] {
    return [...this.#kept.values()].flatMap((kept) =>
      kept.process === null ? [] : [kept.process.pid],
    )
  }

  signalAll(signal: 'TERM' | 'KILL'): void {
    for (const kept of this.#kept.values()) kept.process?.signal(signal)
  }

  relayThrough(relays: Pick<Relays, 'say' | 'forget'>): void {
    this.#relays = relays
  }

  hearRelay(to: RelayTarget, from: number, body: RelayBody): boolean {
    const kept = this.#kept.get(holdingKey(to.group, to.rank))
    if (kept === undefined || kept.plan.formation < to.formation) return false
    // Of a formation that is over: heard, and forgotten.
    if (kept.plan.formation > to.formation) return true
    const { process } = kept
    process?.send({ kind: 'relayed', from, body })
    return process !== null
  }

  failGroup(group: GroupId, cause: string): void {
    for (const kept of this.#kept.values())
      if (kept.group === group) this.#report(kept, { kind: 'failed', cause })
  }

  #start(effect: Extract<Effect, { kind: 'rank-start' }>): void {
    const { plan, rank } = effect
    const kept = this.#keep(plan, rank)
    const files = this.#ports.filesOf(plan.model.digest)
    if (files === null) {
      this.#gone(kept, `the files of ${plan.model.name} are no longer on this machine`)
      return
    }
    try {
      const dialable = this.#dialable
      kept.process = this.#ports.launcher.launch(loadFrameFor({ ...effect, files, dialable }), {
        frame: (frame) => this.#take(kept, frame),
        exit: (cause, crashed = false) => this.#gone(kept, cause, crashed),
      })
      this.#report(kept, { kind: 'started', pid: kept.process.pid })
    } catch (error) {
      this.#gone(kept, error instanceof Error ? error.message : String(error))
    }
  }

  #relink(effect: Extract<Effect, { kind: 'rank-relink' }>): void {
    const kept = this.#kept.get(holdingKey(effect.plan.group, effect.rank))
    if (kept === undefined) return
    kept.plan = effect.plan
    kept.process?.send(relinkFrameFor({ ...effect, dialable: this.#dialable }))
  }

  readonly #dialable: NonNullable<RankStart['dialable']> = (endpoint, machine) =>
    this.#ports.endpoints?.dialable?.(endpoint, machine) ?? endpoint

  #keep(plan: GroupPlan, rank: number): Kept {
    const { group } = plan
    const kept: Kept = {
      plan,
      group,
      rank,
      process: null,
      ready: false,
      draining: false,
      explained: false,
      drained: false,
      progressed: 0,
      lastFrameMs: this.#ports.clock.nowMs(),
      busy: false,
      tokens: 0,
      steps: 0,
      tokensPerSecond: 0,
      activeBytes: 0,
    }
    this.#kept.set(holdingKey(group, rank), kept)
    return kept
  }

  #take(kept: Kept, frame: FrameFromWorker): void {
    kept.lastFrameMs = this.#ports.clock.nowMs()
    kept.progressed += 1
    switch (frame.kind) {
      case 'ready':
        kept.ready = true
        kept.activeBytes = frame.weightsBytes
        this.#report(kept, {
          kind: 'ready',
          contextTokens: frame.contextTokens,
          activeBytes: frame.weightsBytes,
          loadMs: frame.loadMs,
        })
        return
      case 'progress':
        if (frame.attempt === null) {
          const fraction = frame.total > 0 ? frame.done / frame.total : 0
          this.#report(kept, { kind: 'progressed', phase: frame.phase, fraction })
        } else this.attempts.take(frame)
        return
      case 'pulse':
        kept.busy = frame.busy
        kept.steps = frame.step
        return
      case 'stats':
        kept.steps = frame.step
        kept.tokensPerSecond = frame.decodeTokensPerSecond
        kept.activeBytes = frame.activeBytes
        return
      case 'failed':
        if (frame.attempt === null) {
          kept.explained = explainedCodes.has(frame.code)
          this.#report(kept, { kind: 'failed', cause: frame.message })
        } else this.#takeAttemptFrame(kept, frame)
        return
      case 'accepted':
      case 'step':
      case 'paused':
      case 'finished':
        this.#takeAttemptFrame(kept, frame)
        return
      case 'peer-lost':
        this.#report(kept, {
          kind: 'orphaned',
          cause: `rank ${frame.rank} was lost: ${frame.reason}`,
        })
        return
      case 'relinked':
        if (frame.formation === kept.plan.formation) this.#report(kept, { kind: 'relinked' })
        return
      case 'relay':
        for (const to of frame.to) this.#relay(kept, to, frame.body)
        return
    }
  }

  #relay({ plan, group, rank: from }: Kept, to: number, body: RelayBody): void {
    const { formation } = plan
    if (this.hearRelay({ group, formation, rank: to }, from, body)) return
    const machine = placedRanks(plan)[to]?.machine
    if (machine !== undefined) this.#relays?.say({ machine, group, formation, from, to, body })
  }

  #takeAttemptFrame(kept: Kept, frame: AttemptFrame): void {
    kept.tokens += this.attempts.take(frame)
    this.#endIfDrained(kept)
  }

  #endIfDrained(kept: Kept): void {
    if (!kept.draining || kept.drained || this.attempts.countOf(kept.group) > 0) return
    // Told, not done here: the agent sees to it that a rank which ignores the signal goes all the same.
    kept.drained = true
    this.#report(kept, { kind: 'drained' })
  }

  #gone(kept: Kept, cause: string, crashed = false): void {
    kept.process = null
    this.#kept.delete(holdingKey(kept.group, kept.rank))
    this.#report(kept, { kind: 'exited', cause, tokens: kept.tokens, steps: kept.steps })
    const isLast = ![...this.#kept.values()].some((other) => other.group === kept.group)
    if (isLast) this.#relays?.forget(kept.group)
    // Behind the head others may be lost and replaced; its rows wait for that.
    if (kept.rank !== 0) return
    // It said why before it went, or was being stopped: then no request is to blame.
    this.attempts.loseGroup(kept.group, cause, crashed && !kept.explained)
  }

  #head(group: GroupId): { send(frame: FrameToWorker): void } | null {
    const kept = this.#kept.get(holdingKey(group, 0))
    return kept?.process != null && kept.ready && !kept.draining ? kept.process : null
  }

  #report(kept: Kept, report: RankReport): void {
    this.#ports.post({ kind: 'rank-report', group: kept.group, rank: kept.rank, report })
  }

  #reserveEndpoints(effect: Extract<Effect, { kind: 'endpoints-reserve' }>): void {
    const { plan, ranks, to } = effect
    const answer = (outcome: EndpointOutcome): void =>
      this.#ports.post({ kind: 'endpoints-reserved', plan, to, outcome })
    const { endpoints } = this.#ports
    if (endpoints !== undefined) endpoints.reserve(plan, ranks, answer)
    else answer({ ok: false, reason: 'groups of several ranks are not supported yet' })
  }
}
