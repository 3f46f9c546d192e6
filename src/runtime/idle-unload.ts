// Unloads what requests have loaded, once nobody has asked it anything for as long as it was to be kept.
import { registerKeys } from '../core/cluster/desired.ts'
import type { GroupId } from '../core/ids.ts'
import { idleDeployments } from '../core/serving/idle.ts'
import type { Clock } from '../ports/clock.ts'
import type { LocalAttempts } from './attempts.ts'
import type { Machine, Notes } from './machine.ts'

const lookEveryMs = 500

export function watchIdle(parts: {
  machine: Machine
  attempts: LocalAttempts
  clock: Clock
  notes: Notes
}): void {
  const { machine, attempts, clock, notes } = parts
  const seenMs = new Map<GroupId, number>()
  const useOf = (group: GroupId): { running: number; lastMs: number } => {
    const since = seenMs.get(group) ?? clock.nowMs()
    seenMs.set(group, since)
    return { running: attempts.countOf(group), lastMs: attempts.lastUsedMs(group) ?? since }
  }
  clock.every(lookEveryMs, () => {
    for (const { id, model } of idleDeployments(machine.state, useOf, clock.nowMs())) {
      notes.note('info', 'a model was idle for as long as it was to be kept', { model: model.name })
      machine.write([{ key: registerKeys.deployment(id), value: undefined }], () => undefined)
    }
  })
}
