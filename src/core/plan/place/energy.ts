// Watts while tokens flow, tokens per joule, and what a million tokens costs.
import { totalSeconds } from '../cost/terms.ts'
import type { CollectiveRegime } from '../cost/links.ts'
import type { PlanPrices } from '../types.ts'
import { type Bench, type Group, stageSeconds } from './group.ts'

/** Ranks that wait for a collective or a hop draw about this part of their load power. */
const waitingShare = 0.4
const secondsPerYear = 365.25 * 24 * 3600

export interface Energy {
  readonly watts: number
  readonly tokensPerJoule: number
}

/** `rate` is what the groups do together when all of this power is drawn. */
export function energyOf(
  bench: Bench,
  groups: readonly Group[],
  rate: number,
  regime: CollectiveRegime,
): Energy {
  let watts = 0
  for (const group of groups) {
    const rows = Math.max(1, Math.ceil(bench.concurrency / groups.length / group.stages.length))
    const batch = bench.mergesRows ? rows : 1
    const { perStage } = stageSeconds(bench, group, batch, regime)
    const share = rate / groups.length / batch
    for (const [index, stage] of group.stages.entries()) {
      const terms = perStage[index]
      if (terms === undefined) continue
      const waiting = terms.collectives + terms.wire
      const working = totalSeconds(terms) - waiting
      // Busy time per second of wall clock; the rest is idle between tokens.
      const busy = Math.min(1, share * (working + waitingShare * waiting))
      for (const member of stage.members) {
        const figures = bench.cluster.machines[member.machine]?.figures
        if (figures !== undefined)
          watts += figures.wattsIdle + busy * (figures.wattsLoad - figures.wattsIdle)
      }
    }
  }
  return { watts, tokensPerJoule: watts > 0 ? rate / watts : 0 }
}

export function pricePerMillion(
  bench: Bench,
  machines: readonly number[],
  energy: Energy,
  prices: PlanPrices | null,
): number | null {
  if (prices === null || energy.tokensPerJoule <= 0) return null
  const joulesPerKilowattHour = 3.6e6
  const electricity = (1e6 / energy.tokensPerJoule / joulesPerKilowattHour) * prices.perKilowattHour
  if (prices.machinePrice === null) return electricity
  const rate = energy.tokensPerJoule * energy.watts
  let purchase = 0
  for (const index of machines) {
    const machine = bench.cluster.machines[index]?.machine
    if (machine !== undefined) purchase += prices.machinePrice(machine) ?? 0
  }
  return electricity + (purchase / (prices.yearsOfUse * secondsPerYear) / rate) * 1e6
}
