// The only place that can turn a planted bug on, and which invariant each must fall to. Tests and
// "bushel simulate --plant" use it; nothing else may.
import { type Planted, planted } from '../core/planted.ts'
import type { Invariant } from './verdict.ts'

export type PlantedBug = keyof Planted

/** Every bug with the invariant that must see it, and what is wrong in words. */
export const plantedBugs: Readonly<
  Record<PlantedBug, { readonly invariant: Invariant; readonly words: string }>
> = {
  stoppingIsFree: { invariant: 'S1', words: 'memory of ranks that are stopping counts as free' },
  volatileEpoch: { invariant: 'S2', words: 'the highest epoch is kept in memory only' },
  epochUnchecked: { invariant: 'S2', words: 'orders of any epoch are obeyed' },
  groupIdReused: { invariant: 'S3', words: 'every start under one epoch gets the same group id' },
  readyTooSoon: { invariant: 'S4', words: 'requests are sent to groups that are still forming' },
  stageLossUnseen: {
    invariant: 'S4',
    words: 'a group that has lost a stage still counts as ready',
  },
  missingFence: {
    invariant: 'S5',
    words: 'late words of an attempt that was given up are listened to',
  },
  anyoneAnswers: {
    invariant: 'S5',
    words: 'whoever says something about an attempt is taken for the machine that was asked',
  },
  fencedWorksOn: {
    invariant: 'S5',
    words: 'an attempt that was given up is not cancelled where it runs',
  },
  positionUnchecked: { invariant: 'S6', words: 'tokens are taken at whatever position they come' },
  endTakenEarly: {
    invariant: 'S6',
    words: 'the end of an answer is taken before all of its tokens are here',
  },
  replayForgotten: { invariant: 'S6', words: 'a resumed attempt starts from the prompt alone' },
  failsWithoutEnding: { invariant: 'S7', words: 'a request that failed is not over' },
  refusalRetried: {
    invariant: 'S7',
    words: 'a refusal is taken for a loss, and another group is asked',
  },
  replayCharged: { invariant: 'S8', words: 'tokens that were replayed are charged again' },
  promptRecounted: { invariant: 'S8', words: 'the prompt is counted again with every attempt' },
  rankForgotten: {
    invariant: 'S9',
    words: 'a rank stopped before it was ready is forgotten instead of ended',
  },
  missingIsRemoved: {
    invariant: 'S10',
    words: 'a key that is missing is read as a wish to remove',
  },
  lastComeWins: {
    invariant: 'S11',
    words: 'of two versions of a register the one that came last wins',
  },
  relayUnordered: { invariant: 'S12', words: 'words between ranks are handed on as they come' },
  tornIsEmpty: { invariant: 'S13', words: 'a journal that cannot be read is an empty one' },
  strangerHeard: { invariant: 'S14', words: 'whoever speaks is heard, in the roster or not' },
  machineResurrected: { invariant: 'S14', words: 'a newer entry of the roster beats a removal' },
  stopStorm: { invariant: 'S15', words: 'orders to stop are repeated at every turn' },
  startsUncounted: {
    invariant: 'S15',
    words: 'a start that is under way does not count, and another one begins at every turn',
  },
  leadersOutbid: {
    invariant: 'S15',
    words: 'two leaders that cannot hear each other both lead those between them',
  },
  everyoneLeads: { invariant: 'L1', words: 'every machine takes itself for the coordinator' },
  oldLifeBelieved: {
    invariant: 'L2',
    words: 'a machine that comes back as a new life is believed to run what the old one ran',
  },
  requestForgotten: {
    invariant: 'L3',
    words: 'a request whose attempt was lost is not offered another group',
  },
  onlyItsGroup: {
    invariant: 'L3',
    words: 'a request that lost its group waits for that very group',
  },
  startNotAborted: { invariant: 'L4', words: 'what a failed start leaves behind is left there' },
  killedOnce: { invariant: 'L4', words: 'KILL is sent once' },
  ghostKept: { invariant: 'L5', words: 'machines that left the roster are never forgotten' },
  tombstoneUntold: {
    invariant: 'L6',
    words: 'machines tell each other what is wanted, not what is removed',
  },
}

/** Bugs that few worlds show are looked for from where they are known to show. */
export const huntFrom: Readonly<Partial<Record<PlantedBug, number>>> = {
  anyoneAnswers: 33,
  endTakenEarly: 20,
  epochUnchecked: 20,
  fencedWorksOn: 11,
  killedOnce: 9,
  leadersOutbid: 202,
  machineResurrected: 19,
  missingFence: 9,
  positionUnchecked: 11,
  refusalRetried: 5,
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
