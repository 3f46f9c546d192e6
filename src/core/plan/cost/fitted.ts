// The constants in use: the priors of constants.ts after the open rows, by rows/fit.ts
// (bench/planner-fit.ts prints them). The test beside it computes them again and fails when these differ, so nothing here is typed in by hand.
import type { Constants } from './constants.ts'

export const fittedConstants: Constants = {
  memoryEfficiency: 0.8538,
  kernelSeconds: 0.000005297,
  attentionShare: 0.1807,
  matmulEfficiency: 0.8061,
  expertPenalty: 1.114,
  latentPenalty: 1.232,
  expertReplicatedShare: 0.1322,
  allReduceFast: 0.00002807,
  allReduceSlow: 0.0002092,
  allReduceTcp: 0.00085,
  allReduceGrowth: 0.4481,
  collectiveCopyBytesPerSecond: 12460000000,
  hopRdma: 0.001122,
  hopTcp: 0.002483,
  hopRpc: 0.005435,
  oldEngineSeconds: 0.009996,
}

/** One standard deviation of each constant's logarithm after the fit. */
export const fittedSpread: Constants = {
  memoryEfficiency: 0.023,
  kernelSeconds: 0.061,
  attentionShare: 0.21,
  matmulEfficiency: 0.022,
  expertPenalty: 0.039,
  latentPenalty: 0.043,
  expertReplicatedShare: 0.32,
  allReduceFast: 0.18,
  allReduceSlow: 0.046,
  allReduceTcp: 0.5,
  allReduceGrowth: 0.21,
  collectiveCopyBytesPerSecond: 0.27,
  hopRdma: 0.25,
  hopTcp: 0.25,
  hopRpc: 0.18,
  oldEngineSeconds: 0.08,
}
