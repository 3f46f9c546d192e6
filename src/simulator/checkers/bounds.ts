// S15: nothing grows without end: neither a machine's state, nor its journal, nor what it says.
import { wantedDeployments } from '../../core/cluster/desired.ts'
import type { Figures } from '../figures.ts'
import type { SimHost } from '../host.ts'
import type { World } from '../world.ts'
import { type Checker, type Scene, nameOf } from './checker.ts'
import { groupsWanted } from './quiet.ts'

/** Messages other than beats that one machine may send another in ten seconds, storms of faults included. */
const messagesPerPeerMax = 120
const windowMs = 10_000
/**
 * Starts of one deployment within the longer window: more, and something goes round in circles. A daemon that
 * boots has no ranks and starts what is wanted once more, however often it is killed: that many come on top.
 */
const startsMax = 20
const longWindowMs = 60_000
const journalBytesMax = 200_000
/**
 * Terms that may begin anywhere in the cluster within the longer window. A daemon that boots, and a machine
 * that is taken out or let in, coordinates itself for a moment, and those it leaves or joins choose again: two
 * more for each, which may begin a while after it.
 */
const termsMax = 10
const termsPerArrival = 2
const chosenWithinMs = 10_000

/** How often something happened lately. */
class Recent {
  readonly #world: World
  readonly #forMs: number
  readonly #times: number[] = []

  constructor(world: World, forMs: number) {
    this.#world = world
    this.#forMs = forMs
  }

  add(): void {
    this.#times.push(this.#world.nowMs)
  }

  get count(): number {
    const sinceMs = this.#world.nowMs - this.#forMs
    while (this.#times[0] !== undefined && this.#times[0] < sinceMs) this.#times.shift()
    return this.#times.length
  }
}

export function boundChecker({ world }: Scene, figures: Figures): Checker {
  const { verdict } = world
  const sent = new Map<number, number>()
  const started = new Map<string, Recent>()
  let seconds = 0
  const begun = new Recent(world, longWindowMs)
  const boots = new Recent(world, longWindowMs)
  const arrivals = new Recent(world, longWindowMs + chosenWithinMs)
  return {
    sent(from, to, message) {
      if ('attempt' in message || message.kind.startsWith('rank-')) return
      figures.messages += 1
      const pair = from.spec.index * 64 + to.spec.index
      sent.set(pair, (sent.get(pair) ?? 0) + 1)
    },
    booted() {
      boots.add()
      arrivals.add()
    },
    saved(host, text) {
      figures.journalWrites += 1
      figures.journalBytesMost = Math.max(figures.journalBytesMost, text.length)
      verdict.check(
        'S15',
        text.length < journalBytesMax,
        () => `the journal of ${nameOf(host)} has ${text.length} bytes`,
      )
    },
    launched({ load }) {
      if (load.stage.index !== 0) return
      const groups = started.get(load.model.name) ?? new Recent(world, longWindowMs)
      started.set(load.model.name, groups)
      groups.add()
      figures.startsMost = Math.max(figures.startsMost, groups.count)
      const allowed = startsMax + boots.count * wantedMost(world, load.model.name)
      verdict.check(
        'S15',
        groups.count <= allowed,
        () => `${load.model.name} was started ${groups.count} times in ${longWindowMs / 1000} s`,
      )
    },
    stepped(_host, { before, after, input }) {
      if (input.kind === 'registers-replace') arrivals.add()
      if (after.term === null || after.term.epoch === before.term?.epoch) return
      figures.terms += 1
      begun.add()
      figures.termsMost = Math.max(figures.termsMost, begun.count)
      verdict.check(
        'S15',
        begun.count <= termsMax + termsPerArrival * arrivals.count,
        () => `${begun.count} terms began within ${longWindowMs / 1000} s`,
      )
    },
    second() {
      seconds += 1
      for (const host of world.hosts) checkState(host)
      if (seconds % (windowMs / 1000) !== 0) return
      for (const [pair, count] of sent) {
        figures.messagesPerPeerMost = Math.max(figures.messagesPerPeerMost, count)
        verdict.check(
          'S15',
          count <= messagesPerPeerMax,
          () =>
            `m${Math.floor(pair / 64)} sent m${pair % 64} ${count} messages in ${windowMs / 1000} s`,
        )
      }
      sent.clear()
    },
  }
  function checkState(host: SimHost): void {
    const state = host.life?.machine.state
    if (state === undefined) return
    const { peers, holdings, starts, stops, heldOff, failures } = state
    let links = 0
    for (const peer of peers.values()) links += peer.links.size
    const entries =
      peers.size + links + holdings.size + starts.size + stops.size + heldOff.size + failures.length
    figures.stateEntriesMost = Math.max(figures.stateEntriesMost, entries)
    const isBounded =
      peers.size <= world.hosts.length &&
      failures.length <= 32 &&
      stops.size <= 200 &&
      entries < 400
    verdict.check('S15', isBounded, () => `the state of ${nameOf(host)} has ${entries} entries`)
  }
}

/** As many groups of a model as anybody wants now. */
function wantedMost(world: World, model: string): number {
  const wishes = world.hosts.flatMap((host) => {
    const registers = host.life?.machine.state.registers
    const wanted = registers === undefined ? [] : wantedDeployments(registers)
    return wanted.filter((deployment) => deployment.model.name === model).map(groupsWanted)
  })
  return Math.max(0, ...wishes)
}
