// Proves the checkers: every planted bug must fall to its named invariant within so many seeds, and the seed
// that shows it must pass without the bug.
import { type PlantedBug, huntFrom, plantedBugs } from './plant.ts'
import { type Job, runJobs } from './pool.ts'
import type { SeedResult } from './run-seed.ts'
import type { Invariant } from './verdict.ts'

export interface Catch {
  readonly bug: PlantedBug
  readonly words: string
  readonly invariant: Invariant
  /** The first seed in which its invariant breaks; null when none did. */
  readonly seed: number | null
  /** What was said there. */
  readonly text: string
  /** Seeds in which its invariant broke, of those that were run. */
  readonly caught: number
  readonly seeds: number
  /** What else the bug broke, and in how many seeds. */
  readonly also: Readonly<Partial<Record<Invariant, number>>>
  /** Whether the same seed, unplanted, breaks nothing. */
  readonly isCleanWithout: boolean
}

export interface HuntOrder {
  readonly bugs?: readonly PlantedBug[]
  /** The first seed; where it is left open, the one from which the bug is known to show. */
  readonly from?: number
  readonly seedsMax: number
  /** One seed is proof enough; without this all are run and counted. */
  readonly stopsAtFirst: boolean
  readonly threads?: number
  readonly onCatch?: (found: Catch) => void
}

export async function huntPlanted(order: HuntOrder): Promise<readonly Catch[]> {
  const catches: Catch[] = []
  for (const bug of order.bugs ?? (Object.keys(plantedBugs) as PlantedBug[])) {
    const found = await hunt(bug, order)
    catches.push(found)
    order.onCatch?.(found)
  }
  return catches
}

async function hunt(bug: PlantedBug, order: HuntOrder): Promise<Catch> {
  const { invariant, words } = plantedBugs[bug]
  const { from = huntFrom[bug] ?? 1, seedsMax, stopsAtFirst } = order
  const threads = order.threads === undefined ? {} : { threads: order.threads }
  let next = from
  let isCaught = false
  const done = await runJobs({
    options: {},
    ...threads,
    next: (): Job | null => {
      if (next >= from + seedsMax || (isCaught && stopsAtFirst)) return null
      next += 1
      return { seed: next - 1, plant: bug }
    },
    onDone: ({ result }) => (isCaught ||= breaks(result, invariant)),
  })
  const results = done.map(({ result }) => result).sort((a, b) => a.seed - b.seed)
  const hits = results.filter((result) => breaks(result, invariant))
  const [first] = hits
  const text = first?.violations.find((broken) => broken.invariant === invariant)?.text ?? ''
  return {
    bug,
    words,
    invariant,
    seed: first?.seed ?? null,
    text,
    caught: hits.length,
    seeds: results.length,
    also: othersBroken(results, invariant),
    isCleanWithout: first !== undefined && (await isClean(first.seed, threads)),
  }
}

async function isClean(seed: number, threads: { threads?: number }): Promise<boolean> {
  const jobs: Job[] = [{ seed, plant: null }]
  const [done] = await runJobs({ options: {}, ...threads, next: () => jobs.shift() ?? null })
  return done?.result.violations.length === 0
}

function breaks({ violations }: SeedResult, invariant: Invariant): boolean {
  return violations.some((violation) => violation.invariant === invariant)
}

function othersBroken(
  results: readonly SeedResult[],
  own: Invariant,
): Partial<Record<Invariant, number>> {
  const others: Partial<Record<Invariant, number>> = {}
  for (const { violations } of results) {
    for (const invariant of new Set(violations.map((violation) => violation.invariant)))
      if (invariant !== own) others[invariant] = (others[invariant] ?? 0) + 1
  }
  return others
}
