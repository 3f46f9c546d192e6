// The one reducer: state and event in, state out. No decisions are taken here.
import { assert, assertNever } from '../assert.ts'
import { limits } from '../limits.ts'
import type { ClusterEvent } from './events.ts'
import { type MachineRecord, compareEpochs } from './record.ts'
import { type Registers, mergeRegisters, registersDigest, writeRegister } from './registers.ts'
import {
  type MachineState,
  type OwnHolding,
  type PeerState,
  holdingKey,
  privateHoldingFields,
} from './state.ts'

/** Older failures are dropped: they no longer hold anything back, and a record must stay small. */
const failuresKept = 32

export function applyEvent(state: MachineState, event: ClusterEvent, nowMs: number): MachineState {
  switch (event.kind) {
    case 'heartbeat-heard':
      return hear(state, event, nowMs)
    case 'link-lost':
      return loseLink(state, event, nowMs)
    case 'record-received':
      return takeRecord(state, event.record, nowMs)
    case 'peer-judged': {
      const peer = state.peers.get(event.peer)
      if (peer === undefined) return state
      return withPeer(state, { ...peer, status: event.status, statusSinceMs: nowMs })
    }
    case 'peer-contacted': {
      const peer = state.peers.get(event.peer)
      if (peer === undefined) return state
      const contact = event.about === 'record' ? { askedMs: nowMs } : { syncedMs: nowMs }
      return withPeer(state, { ...peer, ...contact })
    }
    case 'peer-forgotten': {
      const peers = new Map(state.peers)
      peers.delete(event.peer)
      return { ...state, peers }
    }
    case 'time-lost':
      return excuseSilence(state, event.ms)
    case 'registers-received': {
      const { registers } = mergeRegisters(state.registers, event.entries)
      return withRegisters(state, registers)
    }
    case 'register-written': {
      const by = { machine: state.self.id, boot: state.self.boot }
      return withRegisters(state, writeRegister(state.registers, { ...event, by }))
    }
    case 'registers-replaced':
      return withRegisters(state, event.registers)
    case 'caught-up':
      return { ...state, caughtUp: true }
    case 'self-changed':
      return revised({ ...state, self: { ...state.self, ...event.change } })
    case 'epoch-seen':
      return compareEpochs(event.epoch, state.epochSeen) > 0
        ? revised({ ...state, epochSeen: event.epoch })
        : state
    case 'term-begun':
      return revised({
        ...state,
        epochSeen: event.epoch,
        term: { epoch: event.epoch, startsBegun: 0 },
      })
    case 'term-ended':
      return { ...state, term: null, starts: new Map() }
    case 'view-changed':
      return { ...state, view: { members: event.members, sinceMs: nowMs } }
    case 'holding-changed': {
      const isNews = Object.keys(event.change).some((field) => !privateHoldingFields.has(field))
      const changed = applyHoldingEvent(state, event, nowMs)
      return isNews ? revised(changed) : changed
    }
    case 'holding-added':
    case 'holding-removed':
    case 'rank-ended':
      return revised(applyHoldingEvent(state, event, nowMs))
    case 'start-begun':
    case 'start-prepared':
    case 'start-committed':
    case 'start-ended':
      return applyStartEvent(state, event, nowMs)
    default:
      return assertNever(event)
  }
}

type HoldingEvent = Extract<
  ClusterEvent,
  { kind: 'holding-added' | 'holding-changed' | 'holding-removed' | 'rank-ended' }
>

function applyHoldingEvent(state: MachineState, event: HoldingEvent, nowMs: number): MachineState {
  const holdings = new Map(state.holdings)
  if (event.kind === 'holding-added') {
    holdings.set(holdingKey(event.holding.plan.group, event.holding.rank), event.holding)
    return { ...state, holdings }
  }
  const key = holdingKey(event.group, event.rank)
  const holding = holdings.get(key)
  if (holding === undefined) return state
  if (event.kind === 'holding-changed') {
    const changed: OwnHolding = { ...holding, ...event.change }
    if (changed.state !== holding.state) holdings.set(key, { ...changed, sinceMs: nowMs })
    else holdings.set(key, changed)
    return { ...state, holdings }
  }
  holdings.delete(key)
  if (event.kind === 'holding-removed' || event.asked) return { ...state, holdings }
  const failure = {
    deployment: holding.plan.deployment,
    wish: holding.wish,
    group: event.group,
    rank: event.rank,
    cause: event.cause,
    excused: event.excused,
    atMs: nowMs,
  }
  return { ...state, holdings, failures: [...state.failures, failure].slice(-failuresKept) }
}

type StartEvent = Extract<
  ClusterEvent,
  { kind: 'start-begun' | 'start-prepared' | 'start-committed' | 'start-ended' }
>

function applyStartEvent(state: MachineState, event: StartEvent, nowMs: number): MachineState {
  const starts = new Map(state.starts)
  if (event.kind === 'start-begun') {
    const { plan, wish } = event
    starts.set(plan.group, { plan, wish, sinceMs: nowMs, committed: false, prepared: new Map() })
    const term = state.term && { ...state.term, startsBegun: state.term.startsBegun + 1 }
    return { ...state, starts, term }
  }
  const start = starts.get(event.group)
  if (start === undefined) return state
  if (event.kind === 'start-ended') starts.delete(event.group)
  else if (event.kind === 'start-committed')
    starts.set(event.group, { ...start, committed: true, sinceMs: nowMs })
  else {
    const prepared = new Map(start.prepared).set(event.machine, event.endpoints)
    starts.set(event.group, { ...start, prepared })
  }
  return { ...state, starts }
}

function withRegisters(state: MachineState, registers: Registers): MachineState {
  if (registers === state.registers) return state
  return { ...state, registers, registersDigest: registersDigest(registers) }
}

function withPeer(state: MachineState, peer: PeerState): MachineState {
  return { ...state, peers: new Map(state.peers).set(peer.id, peer) }
}

/** What others see has changed; the revision tells them. */
function revised(state: MachineState): MachineState {
  return { ...state, self: { ...state.self, revision: state.self.revision + 1 } }
}

function hear(
  state: MachineState,
  { from, link, beat }: Extract<ClusterEvent, { kind: 'heartbeat-heard' }>,
  nowMs: number,
): MachineState {
  assert(from !== state.self.id, 'a machine sends no heartbeat to itself')
  const known = state.peers.get(from)
  const reborn = known !== undefined && known.boot !== beat.boot
  // A late beat of an earlier life, or a clone of the identity: the newer life is the machine.
  if (reborn && known.status !== 'dead' && beat.incarnation < known.incarnation) return state
  const links = new Map(reborn ? [] : known?.links).set(link, nowMs)
  return withPeer(state, {
    id: from,
    // A new life has nothing of the old one: its ranks died with its daemon.
    record: reborn ? null : (known?.record ?? null),
    recordAtMs: known?.recordAtMs ?? nowMs,
    incarnation: beat.incarnation,
    boot: beat.boot,
    revisionOffered: beat.revision,
    digest: beat.digest,
    epoch: beat.epoch,
    hears: beat.hears,
    askedMs: known?.askedMs ?? -Infinity,
    syncedMs: reborn ? -Infinity : (known?.syncedMs ?? -Infinity),
    links,
    heardMs: nowMs,
    resetMs: null,
    status: known === undefined || reborn || known.status === 'dead' ? 'alive' : known.status,
    statusSinceMs:
      known === undefined || reborn || known.status === 'dead' ? nowMs : known.statusSinceMs,
  })
}

function loseLink(
  state: MachineState,
  event: Extract<ClusterEvent, { kind: 'link-lost' }>,
  nowMs: number,
): MachineState {
  const peer = state.peers.get(event.peer)
  if (peer === undefined || !peer.links.has(event.link)) return state
  const links = new Map(peer.links)
  links.delete(event.link)
  return withPeer(state, { ...peer, links, resetMs: links.size === 0 ? nowMs : null })
}

function takeRecord(state: MachineState, record: MachineRecord, nowMs: number): MachineState {
  const peer = state.peers.get(record.id)
  // A record of another life than the one now heard is stale, whatever its number says.
  if (peer === undefined || peer.boot !== record.boot) return state
  if (peer.record !== null && peer.record.revision >= record.revision) return state
  return withPeer(state, { ...peer, record, recordAtMs: nowMs })
}

/** Time in which we ourselves did not listen is nobody else's silence. */
function excuseSilence(state: MachineState, ms: number): MachineState {
  const peers = new Map<PeerState['id'], PeerState>()
  for (const [id, peer] of state.peers) {
    const links = new Map([...peer.links].map(([link, heard]) => [link, heard + ms] as const))
    peers.set(id, { ...peer, links, heardMs: peer.heardMs + ms })
  }
  const holdings = new Map(state.holdings)
  for (const [key, holding] of holdings) {
    holdings.set(key, {
      ...holding,
      stepMs: holding.stepMs + ms,
      lastFrameMs: holding.lastFrameMs + Math.min(ms, limits.rankLoadSilenceMsMax),
    })
  }
  return { ...state, peers, holdings }
}
