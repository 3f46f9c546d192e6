// The constants in use: the priors of constants.ts after the open rows, by fit.ts. The test beside
// fit.ts computes them again and fails when these differ, so nothing here is typed in by hand.
import type { Constants } from './constants.ts'

export const fittedConstants: Constants = {
  memoryEfficiency: 0.84,
  kernelSeconds: 5e-6,
  attentionShare: 0.2,
  matmulEfficiency: 0.8,
  expertPenalty: 1.1,
  latentPenalty: 1.25,
  expertReplicatedShare: 0.12,
  allReduceFast: 28e-6,
  allReduceSlow: 210e-6,
  allReduceTcp: 0.85e-3,
  allReduceGrowth: 0.45,
  collectiveCopyBytesPerSecond: 12e9,
  hopRdma: 1.2e-3,
  hopTcp: 2.4e-3,
  hopRpc: 5.5e-3,
  oldEngineSeconds: 10e-3,
}

/** One standard deviation of each constant's logarithm after the fit. */
export const fittedSpread: Constants = {
  memoryEfficiency: 0.02,
  kernelSeconds: 0.05,
  attentionShare: 0.2,
  matmulEfficiency: 0.03,
  expertPenalty: 0.04,
  latentPenalty: 0.05,
  expertReplicatedShare: 0.3,
  allReduceFast: 0.15,
  allReduceSlow: 0.05,
  allReduceTcp: 0.5,
  allReduceGrowth: 0.2,
  collectiveCopyBytesPerSecond: 0.25,
  hopRdma: 0.2,
  hopTcp: 0.3,
  hopRpc: 0.2,
  oldEngineSeconds: 0.15,
}
