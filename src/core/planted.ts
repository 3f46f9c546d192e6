// Bugs that the simulator's own tests plant, one at a time, to prove that its checkers see them. Every
// switch is off, and nothing in the program can turn one on: the type is read-only, no variable of the
// environment is read, and only src/simulator/plant.ts casts the lock away. Each switch is one small
// condition where the real code could have been wrong. Where two layers guard against the same mistake,
// both ask the same switch, because either alone would hide the other's bug.

export interface Planted {
  /** Memory of ranks that are stopping counts as free. */
  readonly stoppingIsFree: boolean
  /** The highest epoch is kept in memory only. */
  readonly volatileEpoch: boolean
  /** Orders of any epoch are obeyed. */
  readonly epochUnchecked: boolean
  /** Every start under one epoch gets the same group id. */
  readonly groupIdReused: boolean
  /** Requests are sent to groups that are still forming. */
  readonly readyTooSoon: boolean
  /** Late words of an attempt that was given up are listened to. */
  readonly missingFence: boolean
  /** Tokens are taken at whatever position they come. */
  readonly positionUnchecked: boolean
  /** A request that failed is not over. */
  readonly failsWithoutEnding: boolean
  /** Tokens that were replayed are charged again. */
  readonly replayCharged: boolean
  /** A rank stopped before it was ready is forgotten instead of ended. */
  readonly rankForgotten: boolean
  /** A key that is missing is read as a wish to remove. */
  readonly missingIsRemoved: boolean
  /** Of two versions of a register the one that came last wins. */
  readonly lastComeWins: boolean
  /** Words between ranks are handed on as they come. */
  readonly relayUnordered: boolean
  /** A journal that cannot be read is an empty one. */
  readonly tornIsEmpty: boolean
  /** Whoever speaks is heard, in the roster or not. */
  readonly strangerHeard: boolean
  /** A newer entry of the roster beats a removal. */
  readonly machineResurrected: boolean
  /** Orders to stop are repeated at every turn. */
  readonly stopStorm: boolean
  /** A start that is under way does not count, and another one begins at every turn. */
  readonly startsUncounted: boolean
  /** Two leaders that cannot hear each other both lead those between them. */
  readonly leadersOutbid: boolean
  /** Every machine takes itself for the coordinator. */
  readonly everyoneLeads: boolean
  /** A machine that comes back as a new life is believed to run what the old one ran. */
  readonly oldLifeBelieved: boolean
  /** A request whose attempt was lost is not offered another group. */
  readonly requestForgotten: boolean
  /** What a failed start leaves behind is left there. */
  readonly startNotAborted: boolean
  /** KILL is sent once. */
  readonly killedOnce: boolean
  /** Machines that left the roster are never forgotten. */
  readonly ghostKept: boolean
  /** Whoever says something about an attempt is taken for the machine that was asked. */
  readonly anyoneAnswers: boolean
  /** An attempt that was given up is not cancelled where it runs. */
  readonly fencedWorksOn: boolean
  /** The end of an answer is taken before all of its tokens are here. */
  readonly endTakenEarly: boolean
  /** A resumed attempt starts from the prompt alone. */
  readonly replayForgotten: boolean
  /** A refusal is taken for a loss, and another group is asked. */
  readonly refusalRetried: boolean
  /** The prompt is counted again with every attempt. */
  readonly promptRecounted: boolean
  /** A group that has lost a stage still counts as ready. */
  readonly stageLossUnseen: boolean
  /** A request that lost its group waits for that very group. */
  readonly onlyItsGroup: boolean
  /** Machines tell each other what is wanted, not what is removed. */
  readonly tombstoneUntold: boolean
}

export const planted: Planted = {
  stoppingIsFree: false,
  volatileEpoch: false,
  epochUnchecked: false,
  groupIdReused: false,
  readyTooSoon: false,
  missingFence: false,
  positionUnchecked: false,
  failsWithoutEnding: false,
  replayCharged: false,
  rankForgotten: false,
  missingIsRemoved: false,
  lastComeWins: false,
  relayUnordered: false,
  tornIsEmpty: false,
  strangerHeard: false,
  machineResurrected: false,
  stopStorm: false,
  startsUncounted: false,
  leadersOutbid: false,
  everyoneLeads: false,
  oldLifeBelieved: false,
  requestForgotten: false,
  startNotAborted: false,
  killedOnce: false,
  ghostKept: false,
  anyoneAnswers: false,
  fencedWorksOn: false,
  endTakenEarly: false,
  replayForgotten: false,
  refusalRetried: false,
  promptRecounted: false,
  stageLossUnseen: false,
  onlyItsGroup: false,
  tombstoneUntold: false,
}
