// Addresses and ports at which ranks of a wider group will listen for each other.
import type { GroupPlan } from '../core/cluster/group-plan.ts'
import type { Endpoint } from '../core/cluster/record.ts'

export type EndpointOutcome =
  | {
      readonly ok: true
      readonly endpoints: readonly { readonly rank: number; readonly endpoint: Endpoint }[]
    }
  | { readonly ok: false; readonly reason: string }

export interface EndpointSource {
  /** Finds one for each of these ranks of the plan, or says why it cannot. Calls back once. */
  reserve(plan: GroupPlan, ranks: readonly number[], done: (outcome: EndpointOutcome) => void): void
}
