// What a gateway needs of the cluster: models by name, answers, and whether anything works at all.
import { assert } from '../core/assert.ts'
import {
  type Deployment,
  isDeploymentRemoved,
  registerKeys,
  wantedDeployments,
} from '../core/cluster/desired.ts'
import type { ModelRef } from '../core/cluster/group-plan.ts'
import { groupsSeen } from '../core/cluster/groups.ts'
import type { GenerationId, MachineId } from '../core/ids.ts'
import type { JsonValue } from '../core/json.ts'
import {
  type Lookup,
  deploymentIdFor,
  lookUpModel,
  servedModels,
} from '../core/serving/catalogue.ts'
import type { Question } from '../core/serving/request.ts'
import { chooseRoute, readyGroups } from '../core/serving/routing.ts'
import { conditionOf } from '../core/serving/waiting.ts'
import type { Clock } from '../ports/clock.ts'
import type { Entropy } from '../ports/entropy.ts'
import type { AttemptHost } from './attempts.ts'
import { type GenerationListener, Generations } from './generations.ts'
import type { Machine } from './machine.ts'

export interface ServingPorts {
  readonly machine: Machine
  readonly clock: Clock
  readonly entropy: Entropy
  readonly hostOn: (machine: MachineId) => AttemptHost
}

export class Serving {
  readonly #ports: ServingPorts
  readonly generations: Generations

  constructor(ports: ServingPorts) {
    this.#ports = ports
    const { machine, clock } = ports
    this.generations = new Generations({
      ...ports,
      route: (deployment, known) => chooseRoute(readyGroups(machine.state, deployment), known),
      standingOf: (id) => {
        const { registers } = machine.state
        if (isDeploymentRemoved(registers, id)) return 'removed'
        return registers.has(registerKeys.deployment(id)) ? 'wanted' : 'absent'
      },
      waitingFor: (id) => {
        const wanted = wantedDeployments(machine.state.registers).find((other) => other.id === id)
        if (wanted === undefined) return 'a deployment that has been unloaded'
        const { detail } = conditionOf(machine.state, wanted, clock.nowMs())
        return `${wanted.model.name} (${detail})`
      },
    })
    machine.subscribe(() => this.generations.offer())
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
    const deployment: Deployment = {
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
    const write = {
      key: registerKeys.deployment(deployment.id),
      value: deployment as unknown as JsonValue,
    }
    return new Promise((resolve) => {
      this.#ports.machine.write([write], () => resolve(deployment))
    })
  }

  /** Answers a question with a model that lookUp() found, loading it first when nobody has asked for it before. */
  generate(
    asked: { name: string; question: Question; id?: GenerationId },
    listener: GenerationListener,
  ): { id: GenerationId; cancel: () => void } {
    const found = this.lookUp(asked.name)
    assert(found.kind === 'found', 'a model is looked up before it is asked')
    const { served } = found
    if (served.deployment === null) void this.want(served.model)
    const deployment = served.deployment?.id ?? deploymentIdFor(served.model.name)
    const { question, id } = asked
    return this.generations.begin(
      { deployment, question, ...(id === undefined ? {} : { id }) },
      listener,
    )
  }
}
