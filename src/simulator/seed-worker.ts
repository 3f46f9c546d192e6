// A thread that runs the seeds it is given, one after another.
import { parentPort, workerData } from 'node:worker_threads'
import type { Done, Job } from './pool.ts'
import { type RunOptions, runSeed } from './run-seed.ts'

const options = workerData as RunOptions

parentPort?.on('message', (job: Job) => {
  const done: Done = { job, result: runSeed(job.seed, { ...options, plant: job.plant }) }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(done)
})
