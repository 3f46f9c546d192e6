// How long looking may take, and how much it may read. Each with its why.
export const probeLimits = {
  /** ibv_devinfo hangs for ever on a wedged driver; alive it answers in milliseconds. */
  rdmaTimeoutMs: 5_000,
  /** system_profiler walks the whole device tree and is slow on machines with many devices. */
  profilerTimeoutMs: 20_000,
  /** Everything else answers at once; ten seconds means that something is stuck. */
  commandTimeoutMs: 10_000,
  /** The first import of MLX after an install compiles its bytecode. */
  runtimeTimeoutMs: 30_000,
  /** A peer one cable away answers within a millisecond. */
  connectTimeoutMs: 3_000,
  /** The largest honest output, a full ioreg branch, stays below one megabyte. */
  outputBytesMax: 8_388_608,
  /** When the listings contradict each other, interfaces were moving; look once more, then say so. */
  probeAttemptsMax: 2,
} as const
