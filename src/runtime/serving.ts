// What a gateway needs of the cluster: models by name, answers, and whether anything works at all.
import { assert } from '../core/assert.ts'
import {
  type Deployment,
  aliases,
  isDeploymentRemoved,
  registerKeys,
  wantedDeployments,
} from '../core/cluster/desired.ts'
import type { ModelRef } from '../core/cluster/group-plan.ts'
import { groupsSeen } from '../core/cluster/groups.ts'
import type { DeploymentId, GenerationId, MachineId } from '../core/ids.ts'
import type { JsonValue } from '../core/json.ts'
import { limits } from '../core/limits.ts'
import {
  type Lookup,
  deploymentIdFor,
  lookUpModel,
  servedModels,
} from '../core/serving/catalogue.ts'
import { whyNoRoom } from '../core/serving/making-room.ts'
import type { GenerationError, Question } from '../core/serving/request.ts'
import {
  type Route,
  type RouteKnowledge,
  chooseRoute,
  readyGroups,
} from '../core/serving/routing.ts'
import { conditionOf } from '../core/serving/waiting.ts'
import type { Clock } from '../ports/clock.ts'
import type { Entropy } from '../ports/entropy.ts'
import type { AttemptHost } from './attempts.ts'
import { type GenerationListener, Generations } from './generations.ts'
import type { Machine } from './machine.ts'

/** How often a load without a question looks whether it is through. */
const lookEveryMs = 500

export interface ServingPorts {
  readonly machine: Machine
  readonly clock: Clock
  readonly entropy: Entropy
  readonly hostOn: (machine: MachineId) => AttemptHost
  /** How long a model that a request loaded stays after its last use; null keeps it. */
  readonly keepAliveMs: number | null
}

export class Serving {
  readonly #ports: ServingPorts
  readonly generations: Generations
  /** When this gateway last had something for a deployment. */
  readonly #used = new Map<DeploymentId, number>()

  constructor(ports: ServingPorts) {
    this.#ports = ports
    const { machine } = ports
    this.generations = new Generations({
      ...ports,
      route: (deployment, known) => this.#route(deployment, known),
      standingOf: (id) => {
        const { registers } = machine.state
        if (isDeploymentRemoved(registers, id)) return 'removed'
        return registers.has(registerKeys.deployment(id)) ? 'wanted' : 'absent'
      },
      waitingFor: (id) => this.#waitingFor(id),
      whyNoRoom: (id) => whyNoRoom(machine.state, id, ports.clock.nowMs()),
      withdraw: (id) => void this.#write(registerKeys.deployment(id), undefined),
    })
    machine.subscribe(() => this.generations.offer())
  }

  #route(deployment: DeploymentId, known: RouteKnowledge): Route | null {
    const { state } = this.#ports.machine
    const route = chooseRoute(readyGroups(state, deployment), known)
    if (route === null) return null
    const isHere = route.machine === state.self.id
    const platform = isHere ? state.self.platform : state.peers.get(route.machine)?.record?.platform
    return { ...route, make: `${platform ?? 'unknown'} ${route.make}` }
  }

  models(): ReturnType<typeof servedModels> {
    return servedModels(this.#ports.machine.state)
  }

  lookUp(name: string): Lookup {
    return lookUpModel(this.#ports.machine.state, name)
  }

  /** A ready group whose last canary or step succeeded. */
  isReady(): boolean {
    return groupsSeen(this.#ports.machine.state).some((group) => group.status === 'ready')
  }

  /** Makes the model wanted, on one machine and with everything default, unless it is already. */
  want(model: ModelRef, options: Partial<Deployment> = {}): Promise<Deployment> {
    const deployment = this.deploymentOf(model, options)
    const key = registerKeys.deployment(deployment.id)
    return this.#write(key, deployment as unknown as JsonValue).then(() => deployment)
  }

  deploymentOf(model: ModelRef, options: Partial<Deployment> = {}): Deployment {
    return {
      id: deploymentIdFor(model.name),
      model,
      strategy: 'auto',
      machines: [],
      layers: [],
      backend: 'auto',
      replicas: 1,
      standby: false,
      contextTokens: model.contextTokens,
      keepAliveMs: null,
      ...options,
    }
  }

  aliases(): ReadonlyMap<string, string> {
    return aliases(this.#ports.machine.state.registers)
  }

  setAlias(name: string, target: string): Promise<void> {
    return this.#write(registerKeys.alias(name), target)
  }

  /** False when there was no such alias. */
  async removeAlias(name: string): Promise<boolean> {
    if (!this.aliases().has(name)) return false
    await this.#write(registerKeys.alias(name), undefined)
    return true
  }

  /** Nobody wants it any more; answers in flight may finish. */
  async unload(name: string): Promise<void> {
    const found = this.lookUp(name)
    if (found.kind === 'unknown' || found.served.deployment === null) return
    await this.#write(registerKeys.deployment(found.served.deployment.id), undefined)
  }

  /** How long nobody asked here; null when nobody ever has. */
  idleMs(deployment: DeploymentId): number | null {
    const usedMs = this.#used.get(deployment)
    return usedMs === undefined ? null : this.#ports.clock.nowMs() - usedMs
  }

  /** Answers a question with a model that lookUp() found, loading it first when nobody has asked for it before. */
  generate(
    asked: {
      name: string
      question: Question
      id?: GenerationId
      /** What the client calls the answer, to find it again. */
      label?: string
      keepAliveMs?: number | null
    },
    listener: GenerationListener,
  ): { id: GenerationId; cancel: () => void } {
    const deployment = this.#wantForUse(asked.name, asked.keepAliveMs)
    const { question, id, label } = asked
    return this.generations.begin(
      {
        deployment,
        question,
        ...(id === undefined ? {} : { id }),
        ...(label === undefined ? {} : { label }),
      },
      listener,
    )
  }

  /** Loads a model without asking it anything; null when it is ready, otherwise why it is not. */
  prepare(
    name: string,
    { keepAliveMs, signal }: { keepAliveMs?: number | null; signal: AbortSignal },
  ): Promise<GenerationError | null> {
    const { machine, clock } = this.#ports
    const deployment = this.#wantForUse(name, keepAliveMs)
    const startedMs = clock.nowMs()
    return new Promise((resolve) => {
      const end = (outcome: GenerationError | null): void => {
        cancelTimer()
        unsubscribe()
        signal.removeEventListener('abort', stop)
        resolve(outcome)
      }
      const stop = (): void => end({ code: 'cancelled', message: 'nobody waits for it any more' })
      const look = (): void => {
        if (readyGroups(machine.state, deployment).length > 0) return end(null)
        const waitedMs = clock.nowMs() - startedMs
        if (waitedMs < limits.roomWaitMsMax) return
        const noRoom = whyNoRoom(machine.state, deployment, clock.nowMs())
        if (noRoom !== null) {
          void this.#write(registerKeys.deployment(deployment), undefined)
          return end({ code: 'no-room', message: noRoom })
        }
        if (waitedMs < limits.readyWaitMsMax) return
        const message = `Gave up waiting for ${this.#waitingFor(deployment)}`
        end({ code: 'wait-expired', message })
      }
      const unsubscribe = machine.subscribe(look)
      signal.addEventListener('abort', stop)
      // A quiet cluster gives no occasion to look.
      const cancelTimer = clock.every(lookEveryMs, look)
      look()
    })
  }

  #wantForUse(name: string, keepAliveMs: number | null | undefined): DeploymentId {
    const found = this.lookUp(name)
    assert(found.kind === 'found', 'a model is looked up before it is asked')
    const { model, deployment } = found.served
    const id = deployment?.id ?? deploymentIdFor(model.name)
    this.#used.set(id, this.#ports.clock.nowMs())
    if (deployment === null) {
      const wish = keepAliveMs === undefined ? this.#ports.keepAliveMs : keepAliveMs
      void this.want(model, { keepAliveMs: wish })
      return id
    }
    // What a person loaded stays as that person said; what requests loaded goes by the newest of them.
    const isOwn = deployment.keepAliveMs !== null
    if (isOwn && keepAliveMs !== undefined && keepAliveMs !== deployment.keepAliveMs) {
      const { version: _version, ...wanted } = deployment
      void this.want(model, { ...wanted, keepAliveMs })
    }
    return id
  }

  #waitingFor(id: DeploymentId): string {
    const { machine, clock } = this.#ports
    const wanted = wantedDeployments(machine.state.registers).find((other) => other.id === id)
    if (wanted === undefined) return 'a deployment that has been unloaded'
    const { detail } = conditionOf(machine.state, wanted, clock.nowMs())
    return `${wanted.model.name} (${detail})`
  }

  #write(key: string, value: JsonValue | undefined): Promise<void> {
    return new Promise((resolve) => {
      this.#ports.machine.write([{ key, value }], () => resolve())
    })
  }
}
