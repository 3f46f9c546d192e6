// A thread that runs the seeds it is given, one after another.
import { parentPort, workerData } from 'node:worker_threads'
import { type RunOptions, runSeed } from './run-seed.ts'

const options = workerData as RunOptions

parentPort?.on('message', (seed: number) => {
  parentPort?.postMessage(runSeed(seed, options))
})
