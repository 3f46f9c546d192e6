// Many seeds on all cores. Seeds know nothing of each other, so their order does not matter.
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { type RunOptions, type SeedResult, runSeed } from './run-seed.ts'

export interface PoolOrder {
  readonly from: number
  readonly count: number
  readonly options: Omit<RunOptions, 'print'>
  /** Stops handing out seeds after the first that breaks something. */
  readonly stopsAtViolation?: boolean
  readonly threads?: number
  readonly onResult?: (result: SeedResult, done: number) => void
}

/** Results in the order of their seeds. */
export async function runSeeds(order: PoolOrder): Promise<readonly SeedResult[]> {
  const { from, count, onResult } = order
  const threads = Math.min(count, order.threads ?? availableParallelism())
  const results: SeedResult[] = []
  let next = from
  const take = (): number | null => {
    const isBroken = order.stopsAtViolation === true && results.some(isViolated)
    if (next >= from + count || isBroken) return null
    next += 1
    return next - 1
  }
  const keep = (result: SeedResult): void => {
    results.push(result)
    onResult?.(result, results.length)
  }
  if (threads <= 1) {
    for (let seed = take(); seed !== null; seed = take()) keep(runSeed(seed, order.options))
  } else {
    await Promise.all(Array.from({ length: threads }, () => work(order.options, take, keep)))
  }
  return results.sort((a, b) => a.seed - b.seed)
}

function isViolated(result: SeedResult): boolean {
  return result.violations.length > 0
}

function work(
  options: PoolOrder['options'],
  take: () => number | null,
  keep: (result: SeedResult) => void,
): Promise<void> {
  // The build turns .ts into .js; a thread is started from whichever this is.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const worker = new Worker(new URL(`./seed-worker.${extension}`, import.meta.url), {
    workerData: options,
  })
  return new Promise((resolve, reject) => {
    const hand = (): void => {
      const seed = take()
      if (seed === null) void worker.terminate().then(() => resolve())
      else worker.postMessage(seed)
    }
    worker.on('message', (result: SeedResult) => {
      keep(result)
      hand()
    })
    worker.on('error', reject)
    hand()
  })
}
