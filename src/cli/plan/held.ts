// How a cluster holds a model: machines without a GPU compute in float32, whatever the files say.
import type { MachineFacts } from '../../core/machine-facts/machine.ts'
import type { PlanModel } from '../../core/plan/types.ts'

export function computesInFloat32({ platform, gpus }: MachineFacts): boolean {
  return platform === 'linux' && !(gpus.known && gpus.value.length > 0)
}

/** The planner knows one format for all machines, so it is changed only where all agree. */
export function asHeld(model: PlanModel, inFloat32: boolean): PlanModel {
  if (!inFloat32) return model
  const format = { name: 'float32', bitsPerWeight: 32, otherBitsPerWeight: null }
  return { ...model, format, otherFormats: [] }
}
