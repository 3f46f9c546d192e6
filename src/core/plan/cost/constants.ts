// The numbers of the cost model: few, each with a physical meaning, bounds it must stay inside, what
// was known of it before any fit, and how sure the fit is. docs/planner.md tells where each comes from.

export interface ConstantEntry {
  /** Known before fitting, from specifications, source code and separate measurements. */
  readonly prior: number
  /** Relative width of that knowledge (one standard deviation of the logarithm). */
  readonly priorSpread: number
  readonly low: number
  readonly high: number
  readonly unit: string
  readonly what: string
}

export type ConstantName =
  | 'memoryEfficiency'
  | 'kernelSeconds'
  | 'attentionShare'
  | 'matmulEfficiency'
  | 'expertPenalty'
  | 'latentPenalty'
  | 'expertReplicatedShare'
  | 'allReduceFast'
  | 'allReduceSlow'
  | 'allReduceTcp'
  | 'allReduceGrowth'
  | 'collectiveCopyBytesPerSecond'
  | 'hopRdma'
  | 'hopTcp'
  | 'hopRpc'
  | 'oldEngineSeconds'

export const constantTable: Readonly<Record<ConstantName, ConstantEntry>> = {
  memoryEfficiency: {
    prior: 0.82,
    priorSpread: 0.08,
    low: 0.6,
    high: 0.95,
    unit: 'share of peak',
    what: 'memory bandwidth that decoding reaches when it streams weights',
  },
  kernelSeconds: {
    prior: 4.5e-6,
    priorSpread: 0.3,
    low: 2e-6,
    high: 12e-6,
    unit: 's',
    what: 'one dependent kernel of a decode step on a GPU of 1.38 GHz: launch, ramp and drain',
  },
  attentionShare: {
    prior: 0.2,
    priorSpread: 0.5,
    low: 0.05,
    high: 0.6,
    unit: 'share of vector peak',
    what: 'arithmetic rate of the one-query attention kernel, which uses no matrix units',
  },
  matmulEfficiency: {
    prior: 0.78,
    priorSpread: 0.1,
    low: 0.5,
    high: 0.95,
    unit: 'share of matrix peak',
    what: 'rate of large matrix products in prefill',
  },
  expertPenalty: {
    prior: 1.12,
    priorSpread: 0.08,
    low: 1,
    high: 1.6,
    unit: 'factor',
    what: 'extra prefill time of routed experts: part-filled tiles, sorting, gathering',
  },
  latentPenalty: {
    prior: 1.2,
    priorSpread: 0.1,
    low: 1,
    high: 1.8,
    unit: 'factor',
    what: 'the same for latent attention with many small experts, attention scores included',
  },
  expertReplicatedShare: {
    prior: 0.15,
    priorSpread: 0.35,
    low: 0.03,
    high: 0.3,
    unit: 'share',
    what: 'part of a mixture layer’s prefill that more tensor ranks do not shrink: routing, sorting, dispatch, latent projections, ever thinner experts',
  },
  allReduceFast: {
    prior: 28e-6,
    priorSpread: 0.2,
    low: 10e-6,
    high: 80e-6,
    unit: 's',
    what: 'small all-reduce of two ranks over RDMA when GPU and CPU meet without sleeping',
  },
  allReduceSlow: {
    prior: 200e-6,
    priorSpread: 0.5,
    low: 80e-6,
    high: 600e-6,
    unit: 's',
    what: 'the same when every collective pays two full GPU–CPU fences',
  },
  allReduceTcp: {
    prior: 0.85e-3,
    priorSpread: 0.5,
    low: 0.2e-3,
    high: 4e-3,
    unit: 's',
    what: 'small all-reduce of two ranks over TCP',
  },
  allReduceGrowth: {
    prior: 0.5,
    priorSpread: 0.4,
    low: 0.1,
    high: 1.2,
    unit: 'exponent',
    what: 'small all-reduce grows as (ranks / 2) to this power: more peers, more skew',
  },
  collectiveCopyBytesPerSecond: {
    prior: 12e9,
    priorSpread: 0.3,
    low: 4e9,
    high: 40e9,
    unit: 'B/s',
    what: 'rate at which the CPU sums and copies collective buffers, beside the wire',
  },
  hopRdma: {
    prior: 1.2e-3,
    priorSpread: 0.5,
    low: 0.2e-3,
    high: 4e-3,
    unit: 's',
    what: 'a token passing from one stage to the next over RDMA: evaluate, send, wake, continue',
  },
  hopTcp: {
    prior: 2.5e-3,
    priorSpread: 0.6,
    low: 0.3e-3,
    high: 12e-3,
    unit: 's',
    what: 'the same over TCP',
  },
  hopRpc: {
    prior: 5e-3,
    priorSpread: 0.6,
    low: 1e-3,
    high: 15e-3,
    unit: 's',
    what: 'the same in llama.cpp’s RPC backend, which also sends the graph',
  },
  oldEngineSeconds: {
    prior: 8e-3,
    priorSpread: 0.7,
    low: 1e-3,
    high: 25e-3,
    unit: 's',
    what: 'time per token lost outside the model by the engine of 2024 that three open rows used',
  },
}

export type Constants = Readonly<Record<ConstantName, number>>

export const constantNames: readonly ConstantName[] = Object.keys(constantTable) as ConstantName[]

export function priorConstants(): Constants {
  return mapConstants((name) => constantTable[name].prior)
}

export function mapConstants(value: (name: ConstantName) => number): Constants {
  return Object.fromEntries(constantNames.map((name) => [name, value(name)])) as Record<
    ConstantName,
    number
  >
}
