// What machines say to each other about the cluster. Tokens never travel here.
import type { DeploymentId, GroupId, MachineId } from '../ids.ts'
import type { GroupPlan, ModelRef } from './group-plan.ts'
import type { Endpoint, Epoch, MachineRecord, Role } from './record.ts'
import type { Register } from './registers.ts'

/** Sent every half second on every link: small, because there are many. */
export interface Heartbeat {
  readonly boot: string
  readonly incarnation: number
  /** Newest revision of the sender's record, and the digest of its registers: differences are asked for. */
  readonly revision: number
  readonly digest: string
  readonly epoch: Epoch
  readonly role: Role
  /** Machines that the sender hears now. Both directions must hold before two machines share a group. */
  readonly hears: readonly MachineId[]
  /** Who coordinates in the sender's eyes. A machine between two others that cannot hear each other
   * settles with this which of them leads. */
  readonly follows: MachineId | null
}

export type ClusterMessage =
  | { readonly kind: 'record'; readonly record: MachineRecord }
  | { readonly kind: 'record-ask' }
  | { readonly kind: 'registers'; readonly entries: readonly (readonly [string, Register])[] }
  | { readonly kind: 'registers-ask' }
  | GroupMessage

export type GroupMessage =
  | {
      readonly kind: 'group-prepare'
      readonly epoch: Epoch
      readonly wish: number
      readonly plan: GroupPlan
      /** What its machines were taken to run; whoever runs another refuses a group of several. */
      readonly version: string
    }
  | {
      readonly kind: 'group-prepared'
      readonly group: GroupId
      readonly formation: number
      readonly endpoints: readonly { readonly rank: number; readonly endpoint: Endpoint | null }[]
    }
  | {
      readonly kind: 'group-refused'
      readonly group: GroupId
      readonly formation: number
      readonly reason: string
      readonly epochSeen: Epoch
    }
  | {
      readonly kind: 'group-commit'
      readonly epoch: Epoch
      readonly group: GroupId
      readonly formation: number
      readonly endpoints: readonly (Endpoint | null)[]
      readonly secret: string
    }
  /** To a machine that is to hold a part of a model whose files it lacks. */
  | {
      readonly kind: 'model-fetch'
      readonly epoch: Epoch
      readonly model: ModelRef
      readonly from: MachineId
    }
  | {
      readonly kind: 'group-stop'
      readonly epoch: Epoch
      readonly group: GroupId
      readonly deployment: DeploymentId
      readonly reason: string
      /** Finish what is being answered first. */
      readonly drain: boolean
      /** Ranks of the plan with this hash stay. */
      readonly except?: string
      /** Nothing was committed: reservations are given back, and whatever runs by now stays. */
      readonly reservedOnly?: boolean
    }
