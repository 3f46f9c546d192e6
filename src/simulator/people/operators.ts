// Operators: they load and unload models, ask for more or fewer replicas, empty machines, remove them and
// let them back in.
import {
  type Deployment,
  isMachineRemoved,
  registerKeys,
  roster,
} from '../../core/cluster/desired.ts'
import type { ModelRef } from '../../core/cluster/group-plan.ts'
import type { DeploymentId } from '../../core/ids.ts'
import type { JsonValue } from '../../core/json.ts'
import { deploymentIdFor } from '../../core/serving/catalogue.ts'
import type { SimHost } from '../host.ts'
import type { Random } from '../random.ts'
import type { Machine } from '../../runtime/machine.ts'
import { admissionsOf, rosterEntry } from '../roster.ts'
import type { World } from '../world.ts'

/** An admission that was taken back. */
export interface Withdrawal {
  readonly subject: SimHost
  /** The machine left by itself, rather than being removed by another. */
  readonly isOwn: boolean
  /** How often its disk had been tampered with by then: what it forgets later it cannot tell. */
  readonly tampers: number
  /** How often it had been let in by then: a new invitation makes up for having left. */
  readonly admissions: number
}

export class Operators {
  readonly #world: World
  readonly #random: Random
  /** Deployments that somebody has ever asked to unload. */
  readonly unloaded = new Set<DeploymentId>()
  readonly removedMs = new Map<SimHost, number>()
  readonly withdrawn = new Map<string, Withdrawal>()
  readonly admitted = new Map<SimHost, number>()
  admissions = 0
  departures = 0

  constructor(world: World) {
    this.#world = world
    this.#random = world.random.stream('operators')
  }

  /** Some machine that can take a command now. */
  #desk(): SimHost | undefined {
    return this.#random.pick(
      this.#world.hosts.filter((host) => host.isRunning && host.trusts(host.spec.id)),
    )
  }

  load(model: ModelRef): void {
    const { hosts } = this.#world
    const stages = this.#random.chance(0.35) ? this.#random.whole(2, 3) : 1
    const servers = hosts.filter((host) => host.spec.role !== 'client').length
    const isCut = stages > 1 && servers >= stages
    const deployment: Deployment = {
      id: deploymentIdFor(model.name),
      model,
      strategy: isCut ? 'pipeline' : 'auto',
      machines: [],
      layers: isCut ? (stages === 2 ? [14, 10] : [10, 8, 6]) : [],
      backend: 'auto',
      replicas: this.#random.chance(0.3) ? this.#random.whole(2, 3) : 1,
      standby: this.#random.chance(0.1),
      contextTokens: model.contextTokens,
      keepAliveMs: null,
    }
    this.#write(`load ${model.name}`, registerKeys.deployment(deployment.id), deployment as never)
  }

  unload(model: ModelRef): void {
    const id = deploymentIdFor(model.name)
    this.unloaded.add(id)
    this.#write(`unload ${model.name}`, registerKeys.deployment(id), undefined)
  }

  /** Whether new ranks may come to a machine, as its owner says. */
  setAccepting(host: SimHost, ok: boolean): void {
    const accepts = ok ? { ok, reason: '' } : { ok, reason: `${host.spec.name} is being emptied` }
    host.life?.machine.post({ kind: 'self-change', change: { accepts } })
  }

  /** Takes a machine out of the roster, on some other machine's word. */
  remove(host: SimHost): boolean {
    const desk = this.#random.pick(
      this.#world.hosts.filter(
        (other) => other !== host && other.isRunning && other.trusts(host.spec.id),
      ),
    )
    const machine = desk?.life?.machine
    if (machine === undefined) return false
    const keys = admissionsOf(machine.state.registers, host.spec.id).map(([key]) => key)
    this.#world.tell(desk?.spec.name ?? '', 'removes', host.spec.name)
    this.#withdraw(machine, { subject: host, isOwn: false, keys })
    return true
  }

  /** The machine takes itself out. */
  leave(host: SimHost): boolean {
    const machine = host.life?.machine
    if (machine === undefined || !host.isRunning || !host.trusts(host.spec.id)) return false
    this.#world.tell(host.spec.name, 'leaves')
    this.departures += 1
    const own = admissionsOf(machine.state.registers, host.spec.id)
    this.#withdraw(machine, { subject: host, isOwn: true, keys: own.map(([key]) => key) })
    return true
  }

  #withdraw(
    machine: Machine,
    about: { subject: SimHost; isOwn: boolean; keys: readonly string[] },
  ): void {
    const { subject, isOwn, keys } = about
    const { tampers } = subject.disk
    const admissions = this.admitted.get(subject) ?? 0
    machine.write(
      keys.map((key) => ({ key, value: undefined })),
      () => {
        for (const key of keys) this.withdrawn.set(key, { subject, isOwn, tampers, admissions })
      },
    )
    this.removedMs.set(subject, this.#world.nowMs)
  }

  /** Invites a machine: a new roster entry, and the cluster's state handed over whole. */
  admit(host: SimHost): boolean {
    const { life } = host
    const running = this.#world.hosts.filter((other) => other.isRunning)
    const members = this.#largestCluster().filter((other) => other.isRunning)
    // When nobody remembers a cluster, somebody founds one by inviting the others, as the real daemon does.
    const [founder] = members.length === 0 ? running : []
    const inviter = founder ?? this.#random.pick(members.filter((other) => other !== host))
    if (inviter === host) return false
    const machine = inviter?.life?.machine
    if (life === null || inviter === undefined || machine === undefined || !host.isRunning)
      return false
    this.admissions += 1
    this.admitted.set(host, (this.admitted.get(host) ?? 0) + 1)
    this.#world.tell(inviter.spec.name, 'admits', host.spec.name)
    const listed = founder === undefined ? [host] : [founder, host]
    const writes = listed.map(({ spec }) => ({
      key: registerKeys.roster(spec.id, `again-${this.admissions}`),
      value: rosterEntry(spec),
    }))
    machine.write(writes, () => {
      if (!life.isAlive || host.life !== life) return
      life.machine.post({ kind: 'registers-replace', registers: machine.state.registers })
      this.removedMs.delete(host)
    })
    return true
  }

  /** A machine's entry in the roster is written anew, with another address say, wherever it is known. */
  touch(host: SimHost): boolean {
    const desk = this.#random.pick(
      this.#world.hosts.filter((other) => other.isRunning && other.trusts(host.spec.id)),
    )
    const machine = desk?.life?.machine
    if (machine === undefined) return false
    const prefix = `roster/${host.spec.id}/`
    const keys = [...machine.state.registers].flatMap(([key, { value }]) =>
      key.startsWith(prefix) && value !== undefined ? [key] : [],
    )
    this.#world.tell(desk?.spec.name ?? '', 'touches', host.spec.name)
    machine.write(
      keys.map((key) => ({ key, value: rosterEntry(host.spec) })),
      () => undefined,
    )
    return true
  }

  /** Of the clusters there are, each a circle of machines that list each other, the one with most machines. */
  #largestCluster(): readonly SimHost[] {
    const left = new Set(
      this.#world.hosts.filter((host) => host.life !== null && host.trusts(host.spec.id)),
    )
    let largest: readonly SimHost[] = []
    for (const first of left) {
      const cluster = [first]
      for (const host of cluster) {
        left.delete(host)
        for (const other of left)
          if (host.trusts(other.spec.id) && other.trusts(host.spec.id)) {
            left.delete(other)
            cluster.push(other)
          }
      }
      if (cluster.length > largest.length) largest = cluster
    }
    return [...largest].sort((a, b) => a.spec.index - b.spec.index)
  }

  /** Machines that live and are not in the cluster but should be: in none, or in another that was forgotten. */
  outsiders(): readonly SimHost[] {
    if (this.#world.hosts.length === 1) return []
    const cluster = this.#largestCluster()
    return this.#world.hosts.filter((host) => {
      const registers = host.life?.machine.state.registers
      if (registers === undefined || !host.isRunning) return false
      const isRemoved = this.#world.hosts.some(
        (other) =>
          other.life !== null && isMachineRemoved(other.life.machine.state.registers, host.spec.id),
      )
      const isListed = this.#world.hosts.some(
        (other) => other !== host && other.trusts(host.spec.id),
      )
      const isElsewhere = cluster.length > 1 && !cluster.includes(host)
      return roster(registers).size <= 1 || (isRemoved && !isListed) || isElsewhere
    })
  }

  #write(what: string, key: string, value: JsonValue | undefined): void {
    const desk = this.#desk()
    if (desk === undefined) return
    this.#world.tell(desk.spec.name, 'operator', what)
    desk.life?.machine.write([{ key, value }], () => undefined)
  }
}
