// What was checked and what did not hold.

export const invariants = {
  S1: 'memory reserved and used stays within what a machine lends',
  S2: 'no machine obeys an epoch below the highest on its disk, nor before it is there',
  S3: 'ranks of a group share plan, model, members and version',
  S4: 'ready means that the rank lives and has answered',
  S5: 'nothing of a fenced attempt or group reaches a client',
  S6: 'tokens sent are an append-only prefix of the unbroken answer',
  S7: 'every request has exactly one end',
  S8: 'usage counts each token once',
  S9: 'no rank lives on without an agent that keeps it',
  S10: 'nothing stops without a tombstone, a plan or a failure',
  S11: 'equal sets of updates give equal desired state',
  S12: 'all ranks of a group see one order of work',
  S13: 'what is read as whole was written whole',
  S14: 'machines outside the roster change nothing',
  S15: 'journal, memory and messages stay bounded',
  A0: 'no assertion of the program fails',
  L1: 'one coordinator within 10 s of the last fault',
  L2: 'every deployment that fits is ready within 15 s plus its load time',
  L3: 'every request ends',
  L4: 'at most one restart per group after the last fault, and nothing is left over',
  L5: 'machines that left are forgotten within 60 s',
  L6: 'who left or was removed is out, 8 s after it could be heard of',
} as const

export type Invariant = keyof typeof invariants

export interface Violation {
  readonly invariant: Invariant
  readonly atMs: number
  readonly text: string
}

/** One run may break an invariant thousands of times; a few are enough to see why, and hide no other. */
const violationsKeptOfEach = 5

export class Verdict {
  readonly checks = new Map<Invariant, number>()
  readonly violations: Violation[] = []
  readonly #nowMs: () => number
  readonly #tell: (violation: Violation) => void

  constructor(nowMs: () => number, tell: (violation: Violation) => void) {
    this.#nowMs = nowMs
    this.#tell = tell
  }

  /** Counts one check; when it does not hold, says so. */
  check(invariant: Invariant, holds: boolean, text: () => string): void {
    this.checks.set(invariant, (this.checks.get(invariant) ?? 0) + 1)
    if (holds) return
    const violation = { invariant, atMs: this.#nowMs(), text: text() }
    this.#tell(violation)
    const known = this.violations.filter((other) => other.invariant === invariant)
    if (known.length < violationsKeptOfEach) this.violations.push(violation)
  }
}
