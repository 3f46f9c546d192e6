// Facts that change a machine's state. Everything that happens becomes one of these first.
import type { DeploymentId, GroupId, MachineId } from '../ids.ts'
import type { JsonValue } from '../json.ts'
import type { Advice } from './advice.ts'
import type { GroupPlan } from './group-plan.ts'
import type { Heartbeat } from './messages.ts'
import type { KnownFacts } from './known-facts.ts'
import type { Endpoint, Epoch, MachineRecord } from './record.ts'
import type { Register, Registers } from './registers.ts'
import type { Commitment, OwnHolding, PeerStatus, SelfState } from './state.ts'

export type ClusterEvent =
  // -- peers
  | {
      readonly kind: 'heartbeat-heard'
      readonly from: MachineId
      readonly link: string
      readonly beat: Heartbeat
    }
  | { readonly kind: 'link-lost'; readonly peer: MachineId; readonly link: string }
  | { readonly kind: 'record-received'; readonly record: MachineRecord }
  | { readonly kind: 'peer-judged'; readonly peer: MachineId; readonly status: PeerStatus }
  | {
      readonly kind: 'peer-contacted'
      readonly peer: MachineId
      readonly about: 'record' | 'registers'
    }
  | { readonly kind: 'peer-forgotten'; readonly peer: MachineId }
  | { readonly kind: 'time-lost'; readonly ms: number }
  // -- desired state
  | {
      readonly kind: 'registers-received'
      readonly entries: readonly (readonly [string, Register])[]
    }
  | {
      readonly kind: 'register-written'
      readonly key: string
      readonly value: JsonValue | undefined
    }
  | { readonly kind: 'registers-replaced'; readonly registers: Registers }
  | { readonly kind: 'caught-up' }
  // -- this machine
  | { readonly kind: 'self-changed'; readonly change: Partial<SelfState> }
  | { readonly kind: 'epoch-seen'; readonly epoch: Epoch }
  // -- ranks here
  | { readonly kind: 'holding-added'; readonly holding: OwnHolding }
  | {
      readonly kind: 'holding-changed'
      readonly group: GroupId
      readonly rank: number
      readonly change: Partial<OwnHolding>
    }
  | { readonly kind: 'holding-removed'; readonly group: GroupId; readonly rank: number }
  | {
      readonly kind: 'rank-ended'
      readonly group: GroupId
      readonly rank: number
      readonly cause: string
      readonly excused: boolean
      /** Ended because it was asked to: not a failure. */
      readonly asked: boolean
    }
  // -- what machines are made of
  | { readonly kind: 'facts-asked' }
  | { readonly kind: 'facts-learned'; readonly facts: Pick<KnownFacts, 'machines' | 'silent'> }
  // -- the planner's word
  | { readonly kind: 'advice-asked'; readonly deployment: DeploymentId; readonly basis: string }
  | {
      readonly kind: 'advice-learned'
      readonly deployment: DeploymentId
      readonly basis: string
      readonly advice: Advice
    }
  | { readonly kind: 'measurements-taken'; readonly atMs: number }
  // -- coordination
  | { readonly kind: 'term-begun'; readonly epoch: Epoch }
  | { readonly kind: 'term-ended' }
  /** Who can be coordinated with was looked at again; its clock restarts only if the answer to "who leads" changed. */
  | {
      readonly kind: 'view-taken'
      readonly members: readonly MachineId[]
      readonly coordinator: MachineId | null
    }
  | {
      readonly kind: 'start-begun'
      readonly plan: GroupPlan
      readonly wish: number
      readonly version: string
    }
  | {
      readonly kind: 'start-prepared'
      readonly group: GroupId
      readonly machine: MachineId
      readonly endpoints: readonly { readonly rank: number; readonly endpoint: Endpoint | null }[]
    }
  | {
      readonly kind: 'start-committed'
      readonly group: GroupId
      readonly commitment: Commitment
    }
  | { readonly kind: 'start-ordered'; readonly group: GroupId }
  | { readonly kind: 'start-ended'; readonly group: GroupId }
  | {
      readonly kind: 'stop-ordered'
      readonly group: GroupId
      readonly reservedOnly: boolean
    }
  | {
      readonly kind: 'deployment-held-off'
      readonly deployment: DeploymentId
      readonly untilMs: number
      readonly refusals: number
    }
