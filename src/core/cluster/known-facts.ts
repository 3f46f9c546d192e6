// What this machine has learned of all machines when it last asked: chips, cables, drivers, addresses.
import type { MachineFacts } from '../machine-facts/machine.ts'

/** What is known of the machines, by the names they have in the cluster. */
export interface KnownFacts {
  readonly askedMs: number
  readonly learnedMs: number
  readonly machines: readonly MachineFacts[]
  readonly silent: readonly { readonly name: string; readonly reason: string }[]
}

export const noFacts: KnownFacts = {
  askedMs: -Infinity,
  learnedMs: -Infinity,
  machines: [],
  silent: [],
}
