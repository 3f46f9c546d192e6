// How what is heard of other machines changes the state. Beats come by the thousand a second in a wide
// cluster, so another beat that says nothing new is the shortest path here.
import { assert } from '../assert.ts'
import type { MachineId } from '../ids.ts'
import { limits } from '../limits.ts'
import { SmallMap } from '../small-map.ts'
import type { ClusterEvent } from './events.ts'
import type { Heartbeat } from './messages.ts'
import { type MachineRecord, compareEpochs } from './record.ts'
import type { MachineState, PeerState } from './state.ts'
import { planted } from '../planted.ts'

type Of<Kind extends ClusterEvent['kind']> = Extract<ClusterEvent, { kind: Kind }>

export function hearBeat(
  state: MachineState,
  { from, link, beat }: Of<'heartbeat-heard'>,
  nowMs: number,
): MachineState {
  assert(from !== state.self.id, 'a machine sends no heartbeat to itself')
  const known = state.peers.get(from)
  if (known === undefined) return withPeerNews(state, firstMeeting(from, link, beat, nowMs))
  if (known.boot !== beat.boot) {
    return isOlderLife(known, beat) && known.status !== 'dead'
      ? state
      : withPeerNews(state, {
          ...firstMeeting(from, link, beat, nowMs),
          // Asking again at once is what a stale or cloned identity would make us do for ever.
          askedMs: known.askedMs,
          record: planted.oldLifeBelieved ? known.record : null,
        })
  }
  const links = heardOn(known.links, link, nowMs)
  const isBack = known.status === 'dead'
  if (!isBack && saysTheSame(known, beat)) {
    return withPeer(state, { ...known, links, heardMs: nowMs, resetMs: null })
  }
  const heard: PeerState = {
    ...known,
    ...spoken(beat, known),
    // It went on without us: what it last said it ran may be long gone. It is asked afresh.
    record: isBack ? null : known.record,
    links,
    heardMs: nowMs,
    resetMs: null,
    status: isBack ? 'alive' : known.status,
    statusSinceMs: isBack ? nowMs : known.statusSinceMs,
  }
  return !isBack && standsTheSame(known, beat) ? withPeer(state, heard) : withPeerNews(state, heard)
}

/** A late beat of an earlier life, or a clone of the identity: the newer life is the machine. */
function isOlderLife(known: PeerState, beat: Heartbeat): boolean {
  if (beat.incarnation !== known.incarnation) return beat.incarnation < known.incarnation
  return beat.boot < known.boot
}

function firstMeeting(from: MachineId, link: string, beat: Heartbeat, nowMs: number): PeerState {
  return {
    id: from,
    // A new life has nothing of the old one: its ranks died with its daemon.
    record: null,
    recordAtMs: nowMs,
    ...spoken(beat, null),
    boot: beat.boot,
    askedMs: -Infinity,
    syncedMs: -Infinity,
    links: SmallMap.of([[link, nowMs]]),
    heardMs: nowMs,
    resetMs: null,
    status: 'alive',
    statusSinceMs: nowMs,
  }
}

function spoken(
  beat: Heartbeat,
  known: PeerState | null,
): Pick<
  PeerState,
  'incarnation' | 'revisionOffered' | 'digest' | 'epoch' | 'role' | 'hears' | 'follows'
> {
  const { incarnation, revision, digest, epoch, role, hears, follows } = beat
  // Two links carry beats at different speeds: a late one takes nothing back that only grows.
  const revisionOffered = Math.max(revision, known?.revisionOffered ?? 0)
  const highest = known !== null && compareEpochs(known.epoch, epoch) > 0 ? known.epoch : epoch
  return { incarnation, revisionOffered, digest, epoch: highest, role, hears, follows }
}

function saysTheSame(known: PeerState, beat: Heartbeat): boolean {
  return (
    known.revisionOffered === beat.revision &&
    known.digest === beat.digest &&
    standsTheSame(known, beat)
  )
}

/** Nothing in it that could matter to who hears whom and who leads. */
function standsTheSame(known: PeerState, beat: Heartbeat): boolean {
  return (
    known.epoch.counter === beat.epoch.counter &&
    known.epoch.machine === beat.epoch.machine &&
    known.follows === beat.follows &&
    known.incarnation === beat.incarnation &&
    known.role === beat.role &&
    sameList(known.hears, beat.hears)
  )
}

function sameList(a: readonly MachineId[], b: readonly MachineId[]): boolean {
  if (a.length !== b.length) return false
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false
  return true
}

function heardOn(
  links: SmallMap<string, number>,
  link: string,
  nowMs: number,
): SmallMap<string, number> {
  const heard = links.with(link, nowMs)
  for (const [name, atMs] of links)
    if (nowMs - atMs >= limits.linkForgetMs && name !== link) return heard.without(name)
  return heard
}

export function loseLink(state: MachineState, event: Of<'link-lost'>, nowMs: number): MachineState {
  const peer = state.peers.get(event.peer)
  if (peer === undefined || !peer.links.has(event.link)) return state
  const links = peer.links.without(event.link)
  // A link that has been silent is as good as lost: it must not hide that the last living one went.
  const lives = [...links.values()].some((heardMs) => nowMs - heardMs < limits.suspectAfterMs)
  return withPeer(state, { ...peer, links, resetMs: lives ? null : nowMs })
}

export function takeRecord(
  state: MachineState,
  record: MachineRecord,
  nowMs: number,
): MachineState {
  const peer = state.peers.get(record.id)
  // A record of another life than the one now heard is stale, whatever its number says.
  if (peer === undefined || peer.boot !== record.boot) return state
  if (peer.record !== null && peer.record.revision >= record.revision) return state
  return withPeer(state, { ...peer, record, recordAtMs: nowMs })
}

export function judgePeer(
  state: MachineState,
  event: Of<'peer-judged'>,
  nowMs: number,
): MachineState {
  const peer = state.peers.get(event.peer)
  if (peer === undefined) return state
  return withPeerNews(state, { ...peer, status: event.status, statusSinceMs: nowMs })
}

export function noteContact(
  state: MachineState,
  event: Of<'peer-contacted'>,
  nowMs: number,
): MachineState {
  const peer = state.peers.get(event.peer)
  if (peer === undefined) return state
  const contact = event.about === 'record' ? { askedMs: nowMs } : { syncedMs: nowMs }
  return withPeer(state, { ...peer, ...contact })
}

export function forgetPeer(state: MachineState, id: MachineId): MachineState {
  return { ...state, peers: state.peers.without(id), viewRevision: state.viewRevision + 1 }
}

/** Time in which we ourselves did not listen is nobody else's silence. */
export function excuseSilence(state: MachineState, ms: number, nowMs: number): MachineState {
  // What was heard since we woke must not end up in the future: a peer dying then would go unnoticed.
  const later = (atMs: number): number => Math.min(nowMs, atMs + ms)
  const peers = state.peers.map((peer): PeerState => {
    const resetMs = peer.resetMs === null ? null : later(peer.resetMs)
    return { ...peer, links: peer.links.map(later), heardMs: later(peer.heardMs), resetMs }
  })
  const holdings = new Map(state.holdings)
  for (const [key, holding] of holdings) {
    const stepMs = later(holding.stepMs)
    const lastFrameMs = later(holding.lastFrameMs)
    holdings.set(key, { ...holding, stepMs, lastFrameMs })
  }
  return { ...state, peers, holdings }
}

function withPeer(state: MachineState, peer: PeerState): MachineState {
  return { ...state, peers: state.peers.with(peer.id, peer) }
}

function withPeerNews(state: MachineState, peer: PeerState): MachineState {
  const peers = state.peers.with(peer.id, peer)
  return { ...state, peers, viewRevision: state.viewRevision + 1 }
}
