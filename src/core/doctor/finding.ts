// What the doctor says: one finding per check and subject, with the evidence and the exact next step.
import type { Citation } from '../citation.ts'
import type { LinkFact } from '../links/link-fact.ts'
import type { Fact, Unknown, UnknownKind } from '../machine-facts/fact.ts'
import type { MachineFacts, PathFacts } from '../machine-facts/machine.ts'
import type { Cable } from '../topology/cables.ts'
import type { Topology } from '../topology/topology.ts'

export type Level =
  | 'pass'
  | 'warn'
  | 'fail'
  /** It could not be looked at: never a pass, never a fault of the machine. */
  | 'unknown'
  /** It waits for another check, or has no meaning here. */
  | 'skip'

export interface Finding {
  readonly check: CheckId
  /** The number people quote: "check 12". */
  readonly number: number
  readonly title: string
  readonly level: Level
  readonly machines: readonly string[]
  readonly evidence: string
  readonly next: string | null
  readonly fix: Fix | null
  /** Findings of the knowledge base that say why it matters: "bushel kb detail 2016". */
  readonly kbFindings: readonly number[]
}

export interface DoctorInput {
  readonly machines: readonly MachineFacts[]
  readonly paths: readonly PathFacts[]
  readonly links: readonly LinkFact[]
  readonly topology: Topology
}

/** A check looks at everything and tells what it saw; the order and the waiting are not its business. */
export interface Check {
  readonly id: CheckId
  readonly number: number
  readonly title: string
  /** What the check rests on; empty where the knowledge base says nothing of it. */
  readonly cites: readonly Citation[]
  /** Checks whose failure explains this one: it waits until they pass. */
  readonly after: readonly CheckId[]
  /** Checks whose failure at the *other* end of the cable explains this one. */
  readonly afterAtPeer?: readonly CheckId[]
  readonly examine: (input: DoctorInput) => readonly Observation[]
}

export interface Observation {
  readonly machines: readonly string[]
  /** The cable in question; a failure on one cable says nothing about another. */
  readonly cable?: Cable
  readonly level: Level
  readonly evidence: string
  readonly next?: string
  readonly fix?: Fix
  /** Whether later checks wait for it; failures do unless they say otherwise. */
  readonly blocks?: boolean
}

/** Commands that would set it right, and those that take them back. Nothing stays running. */
export interface Fix {
  readonly machine: string
  readonly summary: string
  readonly commands: readonly FixCommand[]
  /** Empty when there is nothing to take back; `lasting` then says what has changed for good. */
  readonly undo: readonly FixCommand[]
  /** How long it holds, or what cannot be undone. */
  readonly lasting: string
}

export interface FixCommand {
  readonly argv: readonly string[]
  readonly admin: boolean
}

export type CheckId =
  | 'system'
  | 'thunderbolt-5'
  | 'rdma-switch'
  | 'rdma-devices'
  | 'peer-cabled'
  | 'peer-rdma'
  | 'link-speed'
  | 'studio-port'
  | 'port-state'
  | 'bridge'
  | 'address'
  | 'gid'
  | 'route'
  | 'reach'
  | 'local-network'
  | 'firewall'
  | 'sleep'
  | 'stale-ranks'
  | 'versions'
  | 'other-traffic'
  | 'restart'
  | 'listings'
  | 'jaccl-build'
  | 'measured-links'
  | 'linux-memory'
  | 'linux-links'
  | 'linux-runtime'
  | 'nvidia-driver'
  | 'nvidia-memory'
  | 'nvidia-runtime'

export const pass = (machines: readonly string[], evidence: string): Observation => ({
  machines,
  level: 'pass',
  evidence,
})

/** "studio: ibv_devices is not on this machine", with the step that would make it visible. */
export function cannotTell(machine: string, why: Unknown): Observation {
  return {
    machines: [machine],
    level: why.kind === 'not-applicable' ? 'skip' : 'unknown',
    evidence: `${machine}: ${why.detail}`,
    next: nextForUnknown[why.kind],
  }
}

const again =
  'Run "bushel doctor" again; if it stays, send it with "bushel selftest --bundle FILE".'

const nextForUnknown: Readonly<Record<UnknownKind, string>> = {
  'tool-missing': 'Look whether the system is recent enough to have this tool.',
  'timed-out': 'Run the command by hand; if it hangs there too, restart the machine.',
  'needs-admin': 'Run "sudo bushel doctor" to let it look.',
  'tool-failed': again,
  empty: again,
  'not-understood':
    'Please send it with "bushel selftest --bundle FILE": this output is new to Bushel.',
  'not-printed': again,
  'not-captured': 'Capture this command too, or run the doctor on the machine itself.',
  'not-applicable': 'Nothing to do.',
}

/** Applies a judgement to a known fact, and says what is missing otherwise. */
export function judge<T>(
  machine: string,
  fact: Fact<T>,
  decide: (value: T) => Observation,
): Observation {
  return fact.known ? decide(fact.value) : cannotTell(machine, fact.why)
}
