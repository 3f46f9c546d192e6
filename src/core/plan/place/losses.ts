// What one lost machine means for a plan: replicas carry on, stages re-form on whoever has room, or
// nothing is left to run it.
import type { LossOutcome } from '../types.ts'
import type { Bench, Group } from './group.ts'
import { groupMemory } from './group.ts'

/** Silence before a machine counts as lost, and the start of a rank, in seconds. */
const detectionSeconds = 3
const startSeconds = 4
/** What a Mac's disk gives when nothing was measured. */
const diskBytesPerSecondAssumed = 3e9

export interface LossContext {
  readonly bench: Bench
  /** Time to read a typical prompt again. */
  readonly rereadSeconds: number
  /** Whether the model can run without this machine at all, by whatever plan. */
  readonly runsWithout: (machine: number) => boolean
}

export function lossesOf(context: LossContext, groups: readonly Group[]): LossOutcome[] {
  const outcomes: LossOutcome[] = []
  const { bench } = context
  for (const group of groups) {
    const memory = groupMemory(bench, group)
    const members = group.stages.flatMap((stage) => stage.members)
    for (const [index, member] of members.entries()) {
      const machine = bench.cluster.machines[member.machine]
      if (machine === undefined) continue
      const id = machine.machine.id
      if (groups.length > 1) {
        outcomes.push({
          machine: id,
          survives: true,
          gapSeconds: detectionSeconds + context.rereadSeconds,
          how: 'another replica takes its requests over',
        })
        continue
      }
      if (!context.runsWithout(member.machine)) {
        outcomes.push({
          machine: id,
          survives: false,
          gapSeconds: null,
          how: 'the machines left cannot hold the model',
        })
        continue
      }
      const bytes = memory[index] ?? 0
      const world = group.stages.length === 1 && members.length > 1
      const reload = world ? memory.reduce((sum, value) => sum + value, 0) / members.length : bytes
      const disk = machine.machine.diskBytesPerSecond ?? diskBytesPerSecondAssumed
      outcomes.push({
        machine: id,
        survives: true,
        gapSeconds: detectionSeconds + startSeconds + reload / disk + context.rereadSeconds,
        how:
          members.length === 1
            ? 'another machine loads the model'
            : 'the group re-forms around the machines left and reads the prompt again',
      })
    }
  }
  return outcomes
}
