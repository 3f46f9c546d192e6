// The launches of a daemon: those it leads for its command line, and those that run here.
import { join } from 'node:path'
import { LaunchHost } from '../../../adapters/launch/launch-host.ts'
import { freeEndpoint } from '../../../adapters/peers/rank-endpoints.ts'
import type { RankEndpoints } from '../../../adapters/peers/rank-endpoints.ts'
import { baseEnv } from '../../../adapters/rank-process.ts'
import { cryptoEntropy } from '../../../adapters/crypto-entropy.ts'
import { type LaunchWorld, launchWorld, needsFacts } from '../../../core/launch/world.ts'
import { launchLimits } from '../../../core/launch/limits.ts'
import type { LaunchActions } from '../../../gateway/cluster/launch-routes.ts'
import type { Machine, Notes } from '../../../runtime/machine.ts'
import type { LaunchRequest } from '../../../wire/launch-messages.ts'
import type { RuntimePaths } from '../../runtime-paths.ts'
import { rankEnv } from '../../runtime-paths.ts'
import type { FactsExchange } from '../facts-exchange.ts'
import type { Peers } from '../peers.ts'
import { Launch } from './launch.ts'
import { LaunchSession } from './launch-session.ts'
import { type Candidate, LaunchRefused, chooseMachines, machinesWithJaccl } from './prepare.ts'

export interface LaunchesParts {
  readonly machine: () => Machine
  readonly peers: Peers
  readonly facts: FactsExchange
  readonly endpoints: RankEndpoints
  readonly paths: RuntimePaths
  readonly home: string
  /** Read at each launch, so that the owner's change counts at once. */
  readonly isAllowed: () => boolean
  readonly notes: Notes
}

export class Launches implements LaunchActions {
  readonly #parts: LaunchesParts
  readonly #host: LaunchHost
  readonly #running = new Map<string, Launch>()

  constructor(parts: LaunchesParts) {
    this.#parts = parts
    const { paths, home, endpoints, peers } = parts
    this.#host = new LaunchHost({
      home,
      machine: parts.machine().state.self.id,
      python: paths.python,
      keeper: join(paths.workerDir, 'bushel_worker', 'launch_keeper.py'),
      randomHex: (bytes) => cryptoEntropy.hex(bytes),
      env: () => scriptEnv(paths),
      endpointFacing: (machine, address) =>
        address === null ? endpoints.facing(machine) : freeEndpoint(address),
      refusal: () => this.#refusal(),
      note: (text, about) => parts.notes.note('info', text, about),
    })
    peers.bulk.provide(this.#host.service)
  }

  async launch({
    request,
    files,
    toClient,
  }: Parameters<LaunchActions['launch']>[0]): Promise<void> {
    const id = cryptoEntropy.hex(8)
    await toClient({ kind: 'accepted', id })
    const alive = setInterval(() => void toClient({ kind: 'alive' }), launchLimits.silenceMsMax)
    try {
      const machines = chooseMachines(this.#parts.machine().state, request.machines)
      const launch = new Launch({
        machines,
        open: (machine) => this.#open(machine),
        world: () => this.#world(request, machines),
        toClient,
      })
      this.#running.set(id, launch)
      await launch.run(request, files)
    } catch (error) {
      if (!(error instanceof LaunchRefused)) throw error
      await toClient({ kind: 'refused', reason: error.message })
    } finally {
      clearInterval(alive)
      this.#running.delete(id)
    }
  }

  async input(id: string, input: Parameters<LaunchActions['input']>[1]): Promise<boolean> {
    const launch = this.#running.get(id)
    await launch?.input(input)
    return launch !== undefined
  }

  hangUp(id: string): void {
    this.#running.get(id)?.end()
  }

  /** With the daemon. */
  async stop(): Promise<void> {
    for (const launch of this.#running.values()) launch.end()
    await this.#host.stop()
  }

  #refusal(): string | null {
    const { name } = this.#parts.machine().state.self
    const where = `"allow_launch = true" in ${join(this.#parts.home, 'config.toml')} on ${name}`
    try {
      if (this.#parts.isAllowed()) return null
    } catch (error) {
      return `${name} cannot read its settings: ${error instanceof Error ? error.message : String(error)}`
    }
    return `${name} does not allow launches; its owner can allow them with ${where}`
  }

  async #open(machine: Candidate): Promise<LaunchSession> {
    const { id, name } = machine
    if (id === this.#parts.machine().state.self.id)
      return new LaunchSession({ machine: name, stream: this.#host.open(), head: Buffer.alloc(0) })
    try {
      const { socket, head } = await this.#parts.peers.bulk.open(id, { service: 'launch' })
      return new LaunchSession({ machine: name, stream: socket, head })
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      throw new LaunchRefused(reason.startsWith(name) ? reason : `${name}: ${reason}`)
    }
  }

  async #world(request: LaunchRequest, machines: readonly Candidate[]): Promise<LaunchWorld> {
    const { backend } = request
    const busyMachines = machinesWithJaccl(this.#parts.machine().state)
    const about = { backend, machines, busyMachines }
    if (!needsFacts(backend, machines)) return launchWorld({ ...about, facts: null })
    const { machines: all, silent } = await this.#parts.facts.collect()
    const facts = machines.flatMap((one) => all.find(({ name }) => name === one.name) ?? [])
    const missing = silent.find(({ name }) => machines.some((one) => one.name === name))
    if (missing !== undefined)
      return { kind: 'refused', reason: `${missing.name} could not be asked: ${missing.reason}` }
    return launchWorld({ ...about, facts })
  }
}

/** As for ranks, but a launched program may use the network as it likes. */
function scriptEnv(paths: RuntimePaths): Record<string, string> {
  const { HF_HUB_OFFLINE: _hub, TRANSFORMERS_OFFLINE: _models, ...env } = rankEnv(paths)
  return { ...baseEnv(), ...env }
}
