// Every limit in one place, each with its why. Units are in the names.

export const limits = {
  // -- membership
  /** Half a second is fast enough for a 3 s verdict and costs 16 machines under 1,000 small messages a second. */
  heartbeatEveryMs: 500,
  /** Three missed beats: a hiccup of the network or of a garbage collector is not yet a suspicion. */
  suspectAfterMs: 1500,
  /** A reader notices a pause of three seconds; a lost machine must be known by then. */
  deadAfterMs: 3000,
  /** All connections reset at once means a dead process; a moment is left for a redial. */
  resetGraceMs: 400,
  /** A coordinator acts only on a view that has stopped changing. */
  viewStableMs: 2000,
  /** Silent strangers to the roster are forgotten, within a minute of their last word in all. */
  ghostForgetMs: 55_000,
  /** A link that said nothing for this long is no longer listed: laptops change networks, names pile up. */
  linkForgetMs: 10_000,

  // -- the loop
  tickEveryMs: 250,
  /** Decisions may cause further ones; more rounds than this is a loop in our own logic. */
  decideRoundsMax: 32,
  /** A tick later than this means that we slept or starved, and others must not be judged by it. */
  loopLagMsTolerated: 300,
  /** Wall clock against monotonic clock: a larger gap means the machine slept. */
  sleepGapMs: 5000,

  /** Messages that wait behind a journal that cannot be written. They are best effort; memory is not. */
  effectsWaitingMax: 2000,
  /** One that has waited this long was said again since, or no longer holds: all at once they would be a storm. */
  messageWaitMsMax: 3000,

  // -- group starts
  /** What the machines are made of, as far as a JACCL start relies on it: cables are moved between two of them. */
  factsFreshMs: 60_000,
  /** Every tool of a Mac has its own limit of seconds; all together stay below this. */
  factsWaitMsMax: 30_000,
  /** A group that must be placed anew waits this long for the planner: people may be waiting for the group. */
  adviceWaitMsMax: 3000,
  /** Orders are repeated this often until a record shows that they were obeyed: messages get lost. */
  orderRepeatMs: 1000,
  /** A machine that is copying a model is asked again after this long. */
  fetchRepeatMs: 2000,
  /** After a refused plan, time for the records to show why. */
  refusedHoldOffMs: 1000,
  /** Refused again and again, a deployment asks less often; short enough for a cause that passes. */
  refusedHoldOffMsMax: 8000,
  /** A refusal this soon after the last wait was over is one more in a row. */
  refusedInRowMs: 5000,
  /** A machine that was gone first gets to say what it runs now: what arrives first may be what was held up. */
  returnPatienceMs: 1000,
  /** No new group while a machine that just came has not said what it already runs. */
  recordPatienceMs: 2000,
  /** A reservation that nobody commits is given back. */
  reservationMsMax: 10_000,
  prepareMsMax: 5000,
  /** From spawn to the rank's first frame; Python and MLX import within it on a slow disk. */
  rankSpawnMsMax: 60_000,
  /** Loading is watched by progress, not by a total: silence this long is a hang. */
  rankLoadSilenceMsMax: 120_000,
  /** Chunks and steps take at most a second; five without a step is a stall. */
  rankStallMsMax: 5000,
  /** A rank without a neighbour keeps what it holds for this long. */
  orphanMsMax: 60_000,
  /** From TERM to KILL. */
  rankTermMsMax: 2000,
  /** A process stuck in the kernel outlives one KILL; it is sent again until the process is gone. */
  rankKillRepeatMs: 5000,
  /** A rank that outlives KILL this long holds memory nobody else may have: the machine takes no new ones. */
  rankUndeadMs: 30_000,
  /** A rank that has made this many tokens, or steps when it is not the head, had worked: its restart is immediate. */
  workedTokensMin: 20,
  restartBackoffMsMin: 1000,
  restartBackoffMsMax: 60_000,
  /** Failures without work within the window before a deployment is called degraded. */
  restartsMax: 5,
  restartWindowMs: 600_000,

  // -- serving
  /** Beyond this a request is told to come back instead of growing a queue nobody sees. */
  waitingPerGroupMax: 64,
  rowsPerGroupMax: 32,
  /** How long a request may wait for a group that is being started or re-formed. */
  readyWaitMsMax: 600_000,
  /** A model this long unused may make room for another; longer than figures take to become public. */
  roomIdleMsMin: 3000,
  /** How long a request for a model that fits nowhere waits before it is told so: room may just be on its way. */
  roomWaitMsMax: 5000,
  /** A pause this long inside an answer is remembered, whatever the reason. */
  pauseNotedMs: 1500,
  /** A request that was alone when its group crashed this often is not tried again. */
  crashesAloneMax: 2,
  /** Replays of one generation that are explained by machines, links or operators. */
  attemptsPerGenerationMax: 12,
  /** A group that just lost an attempt is asked again only after this: by then the view has caught up. */
  attemptRetryMs: 1000,
  prefillChunkMsMax: 1000,
  requestBodyBytesMax: 33_554_432,
  /** A reader that does not read is held to this much. */
  clientBufferBytesMax: 1_048_576,
  keepAliveEveryMs: 8000,
  /** Headers wait this long for a refusal that deserves its own status code. */
  headersHoldMs: 1500,
  drainMsMax: 120_000,
  /** A whole answer keeps its status open this long: proxies give up after a minute, Node after five. */
  wholeAnswerHoldMs: 45_000,
  /** Choices of one request: each is a generation of its own. */
  choicesMax: 16,
  promptsPerRequestMax: 128,
  /** Of one request; more would fill the queue of a group with a single client's wishes. */
  choicesAtOnceMax: 16,
  embeddingsPerRequestMax: 2048,
  /** Responses kept to be continued: a day of one person's agents, in a corner of memory. */
  storedResponsesMax: 1000,
  storedResponsesBytesMax: 134_217_728,

  // -- words between ranks
  relayRepeatMs: 500,
  /** More operations unheard than this, and the other rank is as good as gone. */
  relayWaitingMax: 1024,

  // -- the wire
  peerFrameBytesMax: 67_108_864,
  workerLineBytesMax: 67_108_864,
} as const
