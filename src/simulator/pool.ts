// Many seeds on all cores. Seeds know nothing of each other, so their order does not matter.
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { PlantedBug } from './plant.ts'
import { type RunOptions, type SeedResult, runSeed } from './run-seed.ts'

/** One seed to run, as it is or with a bug planted. */
export interface Job {
  readonly seed: number
  readonly plant: PlantedBug | null
}

export interface Done {
  readonly job: Job
  readonly result: SeedResult
}

export interface PoolOrder {
  /** Asked for the next job whenever a thread is free; null ends the work. */
  readonly next: () => Job | null
  readonly options: Omit<RunOptions, 'print' | 'plant'>
  readonly threads?: number
  readonly onDone?: (done: Done) => void
}

/** As many threads as help. A single thread is this one. */
export async function runJobs(order: PoolOrder): Promise<readonly Done[]> {
  const { options, onDone } = order
  const threads = order.threads ?? availableParallelism()
  const all: Done[] = []
  const keep = (done: Done): void => {
    all.push(done)
    onDone?.(done)
  }
  if (threads <= 1) {
    for (let job = order.next(); job !== null; job = order.next())
      keep({ job, result: runSeed(job.seed, { ...options, plant: job.plant }) })
  } else {
    await Promise.all(Array.from({ length: threads }, () => work(order, keep)))
  }
  return all
}

export interface SeedsOrder extends Pick<PoolOrder, 'threads'> {
  readonly from: number
  readonly count: number
  readonly options: Omit<RunOptions, 'print'>
  /** Hands out no more seeds after the first that breaks something. */
  readonly stopsAtViolation?: boolean
  readonly onResult?: (result: SeedResult, done: number) => void
}

/** Results in the order of their seeds. */
export async function runSeeds(order: SeedsOrder): Promise<readonly SeedResult[]> {
  const { from, count, onResult, options } = order
  let next = from
  let done = 0
  let isBroken = false
  const results = await runJobs({
    options,
    ...(order.threads === undefined ? {} : { threads: order.threads }),
    next: () => {
      if (next >= from + count || (isBroken && order.stopsAtViolation === true)) return null
      next += 1
      return { seed: next - 1, plant: options.plant ?? null }
    },
    onDone: ({ result }) => {
      done += 1
      isBroken ||= result.violations.length > 0
      onResult?.(result, done)
    },
  })
  return results.map(({ result }) => result).sort((a, b) => a.seed - b.seed)
}

function work({ next, options }: PoolOrder, keep: (done: Done) => void): Promise<void> {
  const first = next()
  if (first === null) return Promise.resolve()
  // The build turns .ts into .js; a thread is started from whichever this is.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const worker = new Worker(new URL(`./seed-worker.${extension}`, import.meta.url), {
    workerData: options,
  })
  return new Promise((resolve, reject) => {
    const hand = (job: Job | null): void => {
      if (job === null) void worker.terminate().then(() => resolve())
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      else worker.postMessage(job)
    }
    worker.on('message', (done: Done) => {
      keep(done)
      hand(next())
    })
    worker.on('error', reject)
    hand(first)
  })
}
