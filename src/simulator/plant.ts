// The only place that can turn a planted bug on, and which invariant each must fall to. Tests and
// "bushel simulate --plant" use it; nothing else may.
import { type Planted, planted } from '../core/planted.ts'
import type { Invariant } from './verdict.ts'

export type PlantedBug = keyof Planted

/** Every bug with the invariant that must see it. */
export const plantedBugs: Readonly<Record<PlantedBug, Invariant>> = {
  stoppingIsFree: 'S1',
  volatileEpoch: 'S2',
  epochUnchecked: 'S2',
  groupIdReused: 'S3',
  readyTooSoon: 'S4',
  missingFence: 'S5',
  positionUnchecked: 'S6',
  failsWithoutEnding: 'S7',
  replayCharged: 'S8',
  rankForgotten: 'S9',
  missingIsRemoved: 'S10',
  lastComeWins: 'S11',
  relayUnordered: 'S12',
  tornIsEmpty: 'S13',
  strangerHeard: 'S14',
  machineResurrected: 'S14',
  stopStorm: 'S15',
  leadersOutbid: 'S15',
  everyoneLeads: 'L1',
  oldLifeBelieved: 'L2',
  requestForgotten: 'L3',
  startNotAborted: 'L4',
  killedOnce: 'L4',
  ghostKept: 'L5',
}

export function isPlantedBug(name: string): name is PlantedBug {
  return Object.hasOwn(plantedBugs, name)
}

/** Runs something with one bug in place, and takes it out again whatever happens. */
export function withPlanted<Result>(bug: PlantedBug | null, run: () => Result): Result {
  const switches = planted as { -readonly [Bug in PlantedBug]: boolean }
  if (bug !== null) switches[bug] = true
  try {
    return run()
  } finally {
    if (bug !== null) switches[bug] = false
  }
}
