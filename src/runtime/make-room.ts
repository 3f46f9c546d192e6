// Unloads idle models when another one is wanted and does not fit beside them.
import { registerKeys } from '../core/cluster/desired.ts'
import { clearanceNow } from '../core/serving/making-room.ts'
import type { Clock } from '../ports/clock.ts'
import type { Machine, Notes } from './machine.ts'

const lookEveryMs = 1000

export function watchRoom(parts: { machine: Machine; clock: Clock; notes: Notes }): void {
  const { machine, clock, notes } = parts
  clock.every(lookEveryMs, () => {
    const clearance = clearanceNow(machine.state, clock.nowMs())
    if (clearance === null) return
    const { wanted, gone } = clearance
    for (const { model } of gone)
      notes.note('info', 'an idle model makes room for another', {
        model: model.name,
        wanted: wanted.model.name,
      })
    const writes = gone.map(({ id }) => ({ key: registerKeys.deployment(id), value: undefined }))
    machine.write(writes, () => undefined)
  })
}
