// What the core wants done in the world, as data. The loop performs effects in order; a journal write
// finishes before the effects behind it begin, so nothing is promised that a crash could forget.
import type { Endpoint } from './cluster/record.ts'
import type { AdviceQuestion } from './cluster/advice.ts'
import type { GroupPlan, ModelRef } from './cluster/group-plan.ts'
import type { ClusterMessage } from './cluster/messages.ts'
import type { GroupId, MachineId } from './ids.ts'

export type Effect =
  | { readonly kind: 'message-send'; readonly to: MachineId; readonly message: ClusterMessage }
  /** Registers and highest epoch, whole: the journal is a snapshot, never a growing log. */
  | { readonly kind: 'journal-write' }
  /** Find an address and a free port for each rank; answered by the input "endpoints-reserved". */
  | {
      readonly kind: 'endpoints-reserve'
      readonly plan: GroupPlan
      readonly ranks: readonly number[]
      readonly to: MachineId
    }
  /** Copies a model's files from another machine; what comes of it shows in this machine's own record. */
  | { readonly kind: 'model-fetch'; readonly model: ModelRef; readonly from: MachineId }
  /** Asks every machine what it is made of; answered by the input "facts-learned". */
  | { readonly kind: 'facts-collect' }
  /** Asks the planner where the next group of a deployment should go; answered by the input "advice-learned". */
  | { readonly kind: 'advice-ask'; readonly question: AdviceQuestion }
  | {
      readonly kind: 'rank-start'
      readonly plan: GroupPlan
      readonly rank: number
      readonly endpoints: readonly (Endpoint | null)[]
      readonly secret: string
    }
  /** A rank that stays hears where its neighbours are now. */
  | {
      readonly kind: 'rank-relink'
      readonly plan: GroupPlan
      readonly rank: number
      readonly endpoints: readonly (Endpoint | null)[]
      readonly secret: string
    }
  | { readonly kind: 'rank-drain'; readonly group: GroupId; readonly rank: number }
  | {
      readonly kind: 'rank-stop'
      readonly group: GroupId
      readonly rank: number
      readonly signal: 'TERM' | 'KILL'
      readonly cause: string
      /** A coordinator's order: its epoch is on disk first. What the agent decides itself waits for no disk. */
      readonly ordered: boolean
    }
  | {
      readonly kind: 'note'
      readonly level: 'info' | 'warn'
      readonly text: string
      readonly about: Readonly<Record<string, string | number>>
    }
