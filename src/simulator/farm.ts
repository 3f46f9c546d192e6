// All rank processes of a run: starts them, joins those of one group, and keeps the account of memory.
import type { Endpoint } from '../core/cluster/record.ts'
import type { EndpointSource } from '../ports/endpoint-source.ts'
import type { RankLauncher } from '../ports/rank-launcher.ts'
import type { LoadFrame } from '../wire/worker-frames.ts'
import type { SimHost } from './host.ts'
import type { Life } from './life.ts'
import { type RankWorld, SimRank } from './rank.ts'
import type { World } from './world.ts'

/** How long a gigabyte takes to load, and what comes on top. */
const loadMsPerGb = 250
const loadMsMin = 400
const slowness = 10

export class RankFarm {
  readonly #world: World
  readonly #ranks = new Map<number, SimRank>()
  readonly #rankWorld: RankWorld
  #pid = 1000
  #port = 40_000

  constructor(world: World) {
    this.#world = world
    this.#rankWorld = {
      random: world.random.stream('ranks'),
      nowMs: () => world.nowMs,
      after: (host, ms, run) => host.afterAwake(ms, run),
      othersOf: (rank) => this.#othersOf(rank),
      onReady: (rank) => world.observers.becameReady(rank),
      onTask: (rank) => world.observers.tasked(rank),
      onExit: (rank) => this.#gone(rank),
      onSignal: (rank, signal) => {
        world.tell(rank.host.spec.name, `signal ${signal}`, `${rank.load.group} pid ${rank.pid}`)
        world.observers.signalled(rank, signal)
      },
      onWrongReplay: (rank, attempt) =>
        world.verdict.check('S6', false, () => `${attempt} was replayed wrongly to ${rank.pid}`),
    }
  }

  /** Every rank that lives, wherever. */
  get living(): IterableIterator<SimRank> {
    return this.#ranks.values()
  }

  livingOn(host: SimHost): readonly SimRank[] {
    return [...this.#ranks.values()].filter((rank) => rank.host === host)
  }

  ofGroup(group: string): readonly SimRank[] {
    return [...this.#ranks.values()].filter((rank) => rank.load.group === group)
  }

  find(host: SimHost, group: string, rank: number): SimRank | undefined {
    return this.livingOn(host).find(
      (other) => other.load.group === group && rankNumber(other.load) === rank,
    )
  }

  launcherOf(host: SimHost, life: Life): RankLauncher {
    return {
      launch: (load, events) => {
        const world = this.#world
        const random = this.#rankWorld.random
        if (host.isPortTaken && random.chance(0.3))
          throw new Error('spawn EAGAIN: the system has no process left')
        const loadMs = this.#loadMs(host, load)
        const pid = (this.#pid += 1)
        const rank = new SimRank({ pid, host, life, load, loadMs }, events, this.#rankWorld)
        const failure = this.#troubleLoading(host, load)
        this.#ranks.set(pid, rank)
        world.trace.tell(world.nowMs, host.spec.name, 'rank starts', `${load.group} pid ${pid}`)
        world.observers.launched(rank)
        rank.begin(failure)
        world.countEffect(host)
        return rank
      },
    }
  }

  endpointsOf(host: SimHost, life: Life): EndpointSource {
    return {
      reserve: (_plan, ranks, done) => {
        const answer = (): void => {
          if (host.isPortTaken) done({ ok: false, reason: 'every port is taken' })
          else done({ ok: true, endpoints: ranks.map((rank) => this.#endpoint(host, rank)) })
        }
        host.afterAwake(this.#rankWorld.random.between(1, 20), () => host.receive(life, answer))
      },
    }
  }

  #endpoint(host: SimHost, rank: number): { rank: number; endpoint: Endpoint } {
    this.#port = this.#port >= 60_000 ? 40_000 : this.#port + 1
    return { rank, endpoint: { host: `10.0.0.${host.spec.index + 1}`, port: this.#port } }
  }

  #loadMs(host: SimHost, load: LoadFrame): number {
    return loadMsOf(load.limits.memoryBytesMax) * (host.isSlowToLoad ? slowness : 1)
  }

  #troubleLoading(host: SimHost, load: LoadFrame): string | null {
    if (host.brokenFiles.has(load.model.digest)) return 'the files of the model are not whole'
    const used = this.livingOn(host).reduce((sum, rank) => sum + rank.load.limits.memoryBytesMax, 0)
    const freeBytes = host.spec.memoryLendBytes * 1.05 - used - host.memoryHeldBytes
    return load.limits.memoryBytesMax > freeBytes ? 'out of memory' : null
  }

  #othersOf(rank: SimRank): readonly SimRank[] | null {
    const { load, host } = rank
    const size = load.stage.count
    if (size === 1) return []
    const others = this.ofGroup(load.group).filter(
      (other) => other !== rank && other.bond.secret === rank.bond.secret,
    )
    if (others.length !== size - 1) return null
    const { network } = this.#world
    const isNear = (other: SimRank): boolean =>
      !other.host.isAsleep &&
      !host.isAsleep &&
      network.carriesBothWays(host.spec.index, other.host.spec.index)
    return others.every(isNear) ? others : null
  }

  #gone(rank: SimRank): void {
    const { host, load } = rank
    this.#ranks.delete(rank.pid)
    const world = this.#world
    world.trace.tell(world.nowMs, host.spec.name, 'rank ends', `${load.group} pid ${rank.pid}`)
    world.observers.exited(rank)
  }
}

/** Load time of a rank with this much memory on an undisturbed machine. */
export function loadMsOf(memoryBytes: number): number {
  return loadMsMin + (memoryBytes / 1e9) * loadMsPerGb
}

/** Ranks are numbered through the stages; every simulated stage has one rank. */
export function rankNumber(load: LoadFrame): number {
  return load.stage.index
}
