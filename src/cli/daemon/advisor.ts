// Answers the coordinator's questions to the planner, and those of other machines that do not have a model's files.
import type { Advice, AdviceQuestion } from '../../core/cluster/advice.ts'
import { registerKeys, wantedDeployments } from '../../core/cluster/desired.ts'
import { isAdvice, isDeployment } from '../../core/cluster/desired-shapes.ts'
import { type MachineId, deploymentId } from '../../core/ids.ts'
import { z } from 'zod'
import type { Machine } from '../../runtime/machine.ts'
import { type Asked, type AdviceParts, advise } from './advise.ts'
import { askPeer } from './ask-peers.ts'
import type { FactsExchange } from './facts-exchange.ts'
import type { Peers } from './peers.ts'

const questionShape = z.object({
  deployment: z.string().min(1),
  groups: z.int().min(1),
  avoid: z.array(z.string()),
  basis: z.string(),
})

export class PlannerAdvisor {
  readonly #parts: Omit<AdviceParts, 'facts'>
  readonly #machine: Machine
  readonly #peers: Peers
  readonly #facts: FactsExchange

  constructor(parts: Omit<AdviceParts, 'facts'> & AdvisorParts) {
    this.#parts = parts
    this.#machine = parts.machine
    this.#peers = parts.peers
    this.#facts = parts.recentFacts
    parts.peers.bulk.provide({
      name: 'advise',
      serve: async (request, transfer) => {
        const question = questionOf(request['question'])
        const { deployment } = request
        if (!isDeployment(registerKeys.deployment(question.deployment), deployment))
          throw new Error('what is to be planned is no deployment')
        transfer.open({ advice: await this.#own({ deployment, question }) })
        transfer.socket.end()
      },
    })
  }

  /** For the loop: the answer becomes an input, whatever it is. */
  async ask(question: AdviceQuestion): Promise<void> {
    const { deployment: id, basis } = question
    const deployment = wantedDeployments(this.#machine.state.registers).find((one) => one.id === id)
    if (deployment === undefined) return
    const advice = await this.#bestOf({ deployment, question })
    this.#machine.post({ kind: 'advice-learned', deployment: id, basis, advice })
  }

  /** Before a load: cables may just have been moved, and a person waits for it anyway. */
  askFresh(asked: Asked): Promise<Advice> {
    return advise({ ...this.#parts, facts: () => this.#facts.machinesNow() }, asked)
  }

  #own(asked: Asked): Promise<Advice> {
    return advise({ ...this.#parts, facts: () => this.#facts.recent() }, asked)
  }

  /** A model that is in no catalogue is known by its files alone: then one who has them is asked. */
  async #bestOf(asked: Asked): Promise<Advice> {
    const own = await this.#own(asked)
    const { digest } = asked.deployment.model
    const holder = this.#parts.folderOf(asked.deployment) === null ? this.#holderOf(digest) : null
    if (own.kind === 'planned' || holder === null) return own
    try {
      const { advice } = await askPeer(this.#peers, holder, { service: 'advise', ...asked })
      return isAdvice(advice) ? advice : own
    } catch {
      return own
    }
  }

  #holderOf(digest: string): MachineId | null {
    for (const { id, status, record } of this.#machine.state.peers.values())
      if (status === 'alive' && record?.models.some((model) => model.digest === digest) === true)
        return id
    return null
  }
}

export interface AdvisorParts {
  readonly machine: Machine
  readonly peers: Peers
  readonly recentFacts: FactsExchange
}

function questionOf(value: unknown): AdviceQuestion {
  const { deployment, avoid, ...rest } = questionShape.parse(value)
  return { ...rest, deployment: deploymentId(deployment), avoid: avoid as MachineId[] }
}
