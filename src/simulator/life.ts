// One life of a daemon, put together as the real one is: the production loop, supervisor, traffic and
// serving, with simulated ports below them.
import { isMachineRemoved } from '../core/cluster/desired.ts'
import { type SelfState, initialState } from '../core/cluster/state.ts'
import type { PeerNetworkEvents } from '../ports/peer-network.ts'
import { Machine, type Notes } from '../runtime/machine.ts'
import { RankSupervisor } from '../runtime/ranks.ts'
import { Serving } from '../runtime/serving.ts'
import { wireTraffic } from '../runtime/traffic.ts'
import { watchSink } from './watch-sink.ts'
import type { JournalContent } from '../wire/journal-file.ts'
import type { SimHost } from './host.ts'
import { farewellOf } from './roster.ts'
import { advisorOf } from './advisor.ts'
import { copierOf } from './copies.ts'
import type { World } from './world.ts'

export interface Life {
  readonly number: number
  isAlive: boolean
  readonly machine: Machine
  readonly serving: Serving
  readonly ranks: RankSupervisor
  /** Where the network delivers; set when the daemon starts to listen. */
  events: PeerNetworkEvents | null
}

export function beginLife(world: World, host: SimHost): Life {
  const random = world.random.stream(`life ${host.spec.index} ${host.lives}`)
  const content = host.disk.load()
  const life = { number: host.lives, isAlive: true, events: null } as {
    -readonly [Field in keyof Life]: Life[Field]
  }
  const clock = host.clockOf(life)
  const entropy = { hex: (bytes: number) => random.hex(bytes) }
  const notes: Notes = {
    note: (level, text, about) =>
      world.trace.tell(world.nowMs, host.spec.name, `${level}: ${text}`, JSON.stringify(about)),
  }
  const network = world.network.portOf(host, life)
  const journal = host.disk.journal(
    { nowMs: () => world.nowMs, random, after: (ms, run) => void clock.after(ms, run) },
    (text) => world.observers.saved(host, text),
  )
  life.ranks = new RankSupervisor({
    clock,
    launcher: world.farm.launcherOf(host, life),
    endpoints: world.farm.endpointsOf(host, life),
    filesOf: (digest) =>
      host.models.some((model) => model.digest === digest)
        ? { path: `/models/${digest}`, engine: 'scripted' }
        : null,
    post: (input) => life.machine.post(input),
    notes,
  })
  const self = describeSelf({ host, boot: random.hex(8), content })
  const initial = initialState(self, { ...content, nowMs: clock.nowMs(), hasPlanner: true })
  life.machine = new Machine(initial, {
    clock,
    entropy,
    network,
    journal,
    ranks: life.ranks,
    models: copierOf(world, host, life),
    advisor: advisorOf(world, host, life),
    notes,
    watch: (step) => {
      if (step.input.kind === 'heartbeat') world.observers.beatTaken(host, step)
      else world.observers.stepped(host, step)
    },
  })
  const traffic = wireTraffic({
    machine: life.machine,
    network,
    local: life.ranks.attempts,
    clock,
    ranks: life.ranks,
  })
  life.serving = new Serving({
    machine: life.machine,
    clock,
    entropy,
    keepAliveMs: null,
    hostOn: (id) => {
      const attempts = traffic.hostOn(id)
      return {
        submit: (order, sink) => {
          world.observers.attempted(host, { ...order, machine: id })
          attempts.submit(order, watchSink(world, order.attempt, sink))
        },
        cancel: (attempt) => {
          world.observers.attemptCancelled(attempt)
          attempts.cancel(attempt)
        },
      }
    },
  })
  followRoster(world, host, life)
  return life
}

function describeSelf(about: {
  host: SimHost
  boot: string
  content: JournalContent | null
}): SelfState {
  const { host, boot, content } = about
  const { spec } = host
  return {
    id: spec.id,
    name: spec.name,
    role: spec.role,
    boot,
    incarnation: Math.max((content?.incarnation ?? 0) + 1, Math.floor(host.wallMs / 1000)),
    revision: 1,
    version: host.version,
    platform: 'simulated',
    computesIn: spec.computesIn,
    memoryLendBytes: spec.memoryLendBytes,
    models: host.models,
    accepts: { ok: true, reason: '' },
  }
}

/** As the real daemon does: who left the roster is shut out, and if it was us, we are on our own again. */
function followRoster(world: World, host: SimHost, life: Life): void {
  let seen = life.machine.state.registers
  life.machine.subscribe((state) => {
    if (state.registers === seen) return
    seen = state.registers
    if (isMachineRemoved(state.registers, state.self.id)) {
      host.disk.farewell = farewellOf(state.registers, state.self.id)
      life.machine.post({ kind: 'registers-replace', registers: new Map() })
    }
    world.network.reviewTrust(host)
  })
}
