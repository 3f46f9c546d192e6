// Draws faults over the run and takes them all back at its end.
import { diskFaults } from './disk-faults.ts'
import type { Fault, FaultKind, FaultSite } from './fault.ts'
import { machineFaults } from './machine-faults.ts'
import { networkFaults } from './network-faults.ts'
import { peopleFaults } from './people-faults.ts'
import { rankFaults } from './rank-faults.ts'

export const faultKinds: readonly FaultKind[] = [
  ...networkFaults,
  ...machineFaults,
  ...diskFaults,
  ...rankFaults,
  ...peopleFaults,
]

/** Draws tried before a moment passes without a fault. */
const drawsMax = 12

/** When a fault that found no victim is tried again. */
const laterMs = 2000

export class Chaos {
  readonly counts = new Map<string, number>()
  readonly #site: FaultSite
  readonly #lasting = new Set<Fault>()
  #isOver = false

  constructor(site: FaultSite) {
    this.#site = site
  }

  get total(): number {
    let total = 0
    for (const count of this.counts.values()) total += count
    return total
  }

  /** Plans so many faults between two moments. */
  plan(faults: number, fromMs: number, untilMs: number): void {
    const { world, random } = this.#site
    for (let index = 0; index < faults; index++)
      world.schedule.at(random.between(fromMs, untilMs), () => this.strike())
  }

  strike(): void {
    if (this.#isOver) return
    for (let draw = 0; draw < drawsMax; draw++) {
      const kind = this.#draw()
      const fault = kind.begin(this.#site)
      if (fault === null) continue
      this.counts.set(kind.name, (this.counts.get(kind.name) ?? 0) + 1)
      this.#site.world.tell('fault', kind.name, fault.about)
      if (fault.lastsMs > 0) this.#last(kind, fault)
      return
    }
    // Nothing that was drawn could happen just now: a lone machine that is down has little left to lose.
    this.#site.world.after(laterMs, () => this.strike())
  }

  /** The last fault is over: everything broken is whole again. */
  heal(): void {
    this.#isOver = true
    for (const fault of this.#lasting) fault.undo()
    this.#lasting.clear()
  }

  #last(kind: FaultKind, fault: Fault): void {
    this.#lasting.add(fault)
    this.#site.world.after(fault.lastsMs, () => {
      if (!this.#lasting.delete(fault)) return
      this.#site.world.tell('fault', `${kind.name} ends`, fault.about)
      fault.undo()
    })
  }

  #draw(): FaultKind {
    const total = faultKinds.reduce((sum, kind) => sum + kind.weight, 0)
    let left = this.#site.random.fraction() * total
    for (const kind of faultKinds) {
      left -= kind.weight
      if (left < 0) return kind
    }
    return faultKinds[0] as FaultKind
  }
}
