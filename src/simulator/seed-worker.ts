// A thread that runs the seeds it is given, one after another.
import { parentPort, workerData } from 'node:worker_threads'
import { type RunOptions, runSeed } from './run-seed.ts'

const options = workerData as RunOptions

parentPort?.on('message', (seed: number) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(runSeed(seed, options))
})
