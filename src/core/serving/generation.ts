// The life of one generation and its attempts. The ledger of sent token ids lives here: a token enters
// it once, from the current attempt, at the next position, and only then goes to the client.
import { assertNever } from '../assert.ts'
import { type AttemptId, type GroupId, type MachineId, attemptId } from '../ids.ts'
import { limits } from '../limits.ts'
import type {
  FinishReason,
  GenerationError,
  GenerationRequest,
  Part,
  Token,
  Usage,
} from './request.ts'
import { planted } from '../planted.ts'
import { type Gap, type GroupPause, type OpenGap, closeGap, groupGap, widenGap } from './gap.ts'

export interface Attempt {
  readonly id: AttemptId
  readonly group: GroupId
  readonly machine: MachineId
  readonly startedMs: number
}

/** An attempt that is over, for the person who asks why there was a pause. */
export interface AttemptRecord {
  readonly group: GroupId
  readonly machine: MachineId
  readonly startedMs: number
  readonly endedMs: number
  readonly tokensAtStart: number
  readonly tokensAtEnd: number
  readonly cause: string
}

/** Enough to explain a bad day; an answer that never ends must not collect for ever. */
const historyKept = 50

export interface Generation {
  readonly request: GenerationRequest
  readonly phase: 'waiting' | 'running' | 'ended'
  /** Append-only and owned by this generation: copying it per token would make long answers quadratic. */
  readonly sent: number[]
  readonly attempt: Attempt | null
  /** Whether a worker has taken the present attempt up. */
  readonly taken: boolean
  readonly attemptsMade: number
  /** Attempts that a worker had taken up before they were lost; only these wear the request out. */
  readonly attemptsSpent: number
  readonly history: readonly AttemptRecord[]
  /** Groups that just lost an attempt, and until when they are asked last. */
  readonly avoided: ReadonlyMap<GroupId, number>
  /** Pauses that a lost attempt made, and the one that is still open. */
  readonly gaps: readonly Gap[]
  readonly openGap: OpenGap | null
  /** What its group told of a pause, until a token ends it. */
  readonly groupPause: GroupPause | null
  /** When the client last got a token, or since when it waits for the first. */
  readonly lastTokenMs: number
  /** How often it was alone on a group when that crashed without an explanation. */
  readonly crashesAlone: number
  /** It was there when a group crashed: it runs by itself until it is known to be harmless. */
  readonly suspected: boolean
  /** Since when nothing has come of it: waits have deadlines. */
  readonly waitingSinceMs: number
  readonly accepted: boolean
  readonly usage: Usage
}

export type GenerationInput =
  | { readonly kind: 'group-offered'; readonly group: GroupId; readonly machine: MachineId }
  | { readonly kind: 'wait-checked'; readonly waitedFor: string }
  | {
      readonly kind: 'attempt-accepted'
      readonly attempt: AttemptId
      readonly promptTokens: number
      readonly cachedTokens: number
    }
  | {
      readonly kind: 'token-received'
      readonly attempt: AttemptId
      readonly position: number
      readonly token: Token
    }
  | { readonly kind: 'attempt-paused'; readonly attempt: AttemptId; readonly pause: GroupPause }
  | {
      readonly kind: 'attempt-finished'
      readonly attempt: AttemptId
      readonly reason: FinishReason
      readonly parts: readonly Part[]
      readonly usage: Usage
    }
  /** The worker will not answer this request, here or anywhere. */
  | {
      readonly kind: 'attempt-refused'
      readonly attempt: AttemptId
      readonly error: GenerationError
    }
  | {
      readonly kind: 'attempt-lost'
      readonly attempt: AttemptId
      readonly cause: string
      /** The group crashed and nobody knows why; absent when machine, link or people explain it. */
      readonly crash?: { readonly alone: boolean }
    }
  /** A person unloaded the deployment; nothing will come of waiting. */
  | { readonly kind: 'deployment-removed' }
  /** Its model fits nowhere, and nothing can make room for it. */
  | { readonly kind: 'room-denied'; readonly reason: string }
  | { readonly kind: 'client-gone' }

export type GenerationAction =
  /** Groups just lost are left out: until the view has caught up they may only seem to be there. */
  | { readonly kind: 'group-ask'; readonly avoid: readonly GroupId[] }
  | {
      readonly kind: 'attempt-start'
      readonly attempt: Attempt
      readonly replay: readonly number[]
      /** It may have brought a group down: nobody else is to be on this one with it. */
      readonly alone: boolean
    }
  | { readonly kind: 'attempt-cancel'; readonly attempt: Attempt }
  | { readonly kind: 'client-accept'; readonly promptTokens: number; readonly cachedTokens: number }
  | { readonly kind: 'client-token'; readonly token: Token }
  | {
      readonly kind: 'client-finish'
      readonly reason: FinishReason
      readonly parts: readonly Part[]
      readonly usage: Usage
    }
  | { readonly kind: 'client-fail'; readonly error: GenerationError }

export interface GenerationStep {
  readonly generation: Generation
  readonly actions: readonly GenerationAction[]
}

export function beginGeneration(request: GenerationRequest, nowMs: number): GenerationStep {
  const generation: Generation = {
    request,
    phase: 'waiting',
    sent: [],
    attempt: null,
    taken: false,
    attemptsMade: 0,
    attemptsSpent: 0,
    history: [],
    avoided: new Map(),
    gaps: [],
    openGap: null,
    groupPause: null,
    lastTokenMs: nowMs,
    crashesAlone: 0,
    suspected: false,
    waitingSinceMs: nowMs,
    accepted: false,
    usage: { promptTokens: 0, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 },
  }
  return { generation, actions: [{ kind: 'group-ask', avoid: [] }] }
}

export function advanceGeneration(
  generation: Generation,
  input: GenerationInput,
  nowMs: number,
): GenerationStep {
  const unchanged: GenerationStep = { generation, actions: [] }
  if (generation.phase === 'ended') return unchanged
  // The fence: whatever an older attempt still says is no longer about this generation.
  const isFenced = 'attempt' in input && input.attempt !== generation.attempt?.id
  if (isFenced && !planted.missingFence) return unchanged
  switch (input.kind) {
    case 'group-offered':
      if (planted.onlyItsGroup && isAnotherGroup(generation, input.group)) return unchanged
      return generation.phase === 'waiting' ? startAttempt(generation, input, nowMs) : unchanged
    case 'wait-checked':
      return checkWait(generation, input.waitedFor, nowMs)
    case 'attempt-accepted':
      return accept(generation, input)
    case 'token-received':
      return takeToken(generation, input, nowMs)
    case 'attempt-paused':
      return { generation: { ...generation, groupPause: input.pause }, actions: [] }
    case 'attempt-finished':
      return finish(generation, input, nowMs)
    case 'attempt-refused':
      if (planted.refusalRetried)
        return loseAttempt(generation, { cause: input.error.message, crash: null }, nowMs)
      return end(generation, [{ kind: 'client-fail', error: input.error }])
    case 'attempt-lost':
      return loseAttempt(generation, { cause: input.cause, crash: input.crash ?? null }, nowMs)
    case 'deployment-removed':
      return generation.phase === 'waiting' ? giveUpUnloaded(generation) : unchanged
    case 'room-denied':
      return generation.phase === 'waiting' ? giveUpRoom(generation, input.reason) : unchanged
    case 'client-gone': {
      const { attempt } = generation
      return end(generation, attempt === null ? [] : [{ kind: 'attempt-cancel', attempt }])
    }
    default:
      return assertNever(input)
  }
}

function startAttempt(
  generation: Generation,
  offer: { group: GroupId; machine: MachineId },
  nowMs: number,
): GenerationStep {
  const number = generation.attemptsMade + 1
  const attempt: Attempt = {
    id: attemptId(`${generation.request.id}.${number}`),
    group: offer.group,
    machine: offer.machine,
    startedMs: nowMs,
  }
  return {
    generation: { ...generation, phase: 'running', attempt, taken: false, attemptsMade: number },
    actions: [
      {
        kind: 'attempt-start',
        attempt,
        replay: planted.replayForgotten ? [] : generation.sent,
        alone: generation.suspected,
      },
    ],
  }
}

function isAnotherGroup({ history }: Generation, group: GroupId): boolean {
  const last = history.at(-1)
  return last !== undefined && last.group !== group
}

function accept(
  generation: Generation,
  { promptTokens, cachedTokens }: { promptTokens: number; cachedTokens: number },
): GenerationStep {
  // A resumed attempt is accepted again; the client has already been told, and its prompt was counted.
  if (generation.accepted && !planted.promptRecounted)
    return { generation: { ...generation, taken: true }, actions: [] }
  const counted = planted.promptRecounted ? generation.usage.promptTokens : 0
  const usage = { ...generation.usage, promptTokens: counted + promptTokens, cachedTokens }
  return {
    generation: { ...generation, taken: true, accepted: true, usage },
    actions: [{ kind: 'client-accept', promptTokens, cachedTokens }],
  }
}

function takeToken(
  generation: Generation,
  { position, token }: { position: number; token: Token },
  nowMs: number,
): GenerationStep {
  const expected = planted.positionUnchecked ? position : generation.sent.length
  if (position < expected) return { generation, actions: [] }
  if (position > expected) {
    const cause = `token ${position} came where ${expected} was due`
    return loseAttempt(generation, { cause, crash: null }, nowMs)
  }
  generation.sent.push(token.id)
  const next = { ...generation, taken: true, lastTokenMs: nowMs, ...gapClosed(generation, nowMs) }
  return { generation: next, actions: [{ kind: 'client-token', token }] }
}

function finish(
  generation: Generation,
  { reason, parts, usage }: { reason: FinishReason; parts: readonly Part[]; usage: Usage },
  nowMs: number,
): GenerationStep {
  const completionTokens = generation.sent.length
  if (usage.completionTokens > completionTokens && !planted.endTakenEarly) {
    const cause = `the end came after ${completionTokens} of ${usage.completionTokens} tokens`
    return loseAttempt(generation, { cause, crash: null }, nowMs)
  }
  // The word that it was accepted may have been lost on the way; the end carries the figures too.
  const { promptTokens, cachedTokens } = generation.accepted ? generation.usage : usage
  const again = planted.replayCharged ? (generation.history.at(-1)?.tokensAtEnd ?? 0) : 0
  const charged = completionTokens + again
  // What was promised from a cache may have gone before its turn; a resumed answer would count its replay.
  const reused =
    generation.attemptsMade > 1 ? cachedTokens : Math.min(cachedTokens, usage.cachedTokens)
  const whole: Usage = {
    ...usage,
    promptTokens,
    cachedTokens: reused,
    completionTokens: charged,
  }
  return end({ ...generation, usage: whole }, [
    { kind: 'client-finish', reason, parts, usage: whole },
  ])
}

/** The first token after a loss ends the pause. */
function gapClosed(generation: Generation, nowMs: number): Partial<Generation> {
  const { openGap, groupPause, attempt, gaps } = generation
  if (attempt === null) return {}
  if (openGap !== null) {
    const closed = closeGap(openGap, attempt, nowMs)
    return { openGap: null, groupPause: null, gaps: [...gaps, closed].slice(-historyKept) }
  }
  const quietMs = nowMs - generation.lastTokenMs
  const isNoted = groupPause !== null || quietMs >= limits.pauseNotedMs
  if (generation.sent.length <= 1 || !isNoted) return { groupPause: null }
  const place = { group: attempt.group, machine: attempt.machine }
  const gap = groupGap(groupPause, { atToken: generation.sent.length - 1, quietMs, place })
  return { groupPause: null, gaps: [...gaps, gap].slice(-historyKept) }
}

interface Loss {
  readonly cause: string
  readonly crash: { readonly alone: boolean } | null
}

function loseAttempt(
  generation: Generation,
  { cause, crash }: Loss,
  nowMs: number,
): GenerationStep {
  const { attempt, history, taken } = generation
  if (attempt === null) return { generation, actions: [] }
  const record: AttemptRecord = {
    group: attempt.group,
    machine: attempt.machine,
    startedMs: attempt.startedMs,
    endedMs: nowMs,
    tokensAtStart: history.at(-1)?.tokensAtEnd ?? 0,
    tokensAtEnd: generation.sent.length,
    cause,
  }
  const next: Generation = {
    ...generation,
    phase: 'waiting',
    attempt: null,
    taken: false,
    attemptsSpent: generation.attemptsSpent + (taken ? 1 : 0),
    history: [...history, record].slice(-historyKept),
    openGap: widenGap(generation.openGap, {
      atToken: generation.sent.length,
      cause,
      from: { group: attempt.group, machine: attempt.machine },
      lastMs: Math.max(generation.lastTokenMs, attempt.startedMs),
      lostMs: nowMs,
    }),
    suspected: generation.suspected || crash !== null,
    crashesAlone: generation.crashesAlone + (crash?.alone === true ? 1 : 0),
    avoided: new Map(generation.avoided).set(attempt.group, nowMs + limits.attemptRetryMs),
    // An attempt that nobody took up does not restart the clock, or a wait could go on for ever.
    waitingSinceMs: taken ? nowMs : generation.waitingSinceMs,
  }
  // Whoever still works on it works for nobody now.
  const cancel: GenerationAction = { kind: 'attempt-cancel', attempt }
  if (next.crashesAlone >= limits.crashesAloneMax) {
    const message = `This request was alone on its group when that crashed, ${next.crashesAlone} times; it is not tried again. The last cause was: ${cause}`
    return end(next, [cancel, { kind: 'client-fail', error: { code: 'request-crashes', message } }])
  }
  if (next.attemptsSpent >= limits.attemptsPerGenerationMax) {
    const message = `The answer was interrupted ${next.attemptsSpent} times and was given up; the last cause was: ${cause}`
    const error = { code: 'attempts-exhausted', message }
    return end(next, [cancel, { kind: 'client-fail', error }])
  }
  return { generation: next, actions: [cancel, askForGroup(next, nowMs)] }
}

function askForGroup(generation: Generation, nowMs: number): GenerationAction {
  const avoid: GroupId[] = []
  for (const [group, untilMs] of generation.avoided) if (untilMs > nowMs) avoid.push(group)
  return { kind: 'group-ask', avoid }
}

function giveUpUnloaded(generation: Generation): GenerationStep {
  const message = 'The model was unloaded while the request waited for it; load it and ask again'
  return end(generation, [{ kind: 'client-fail', error: { code: 'model-unloaded', message } }])
}

function giveUpRoom(generation: Generation, message: string): GenerationStep {
  return end(generation, [{ kind: 'client-fail', error: { code: 'no-room', message } }])
}

function checkWait(generation: Generation, waitedFor: string, nowMs: number): GenerationStep {
  if (generation.phase !== 'waiting') return { generation, actions: [] }
  const waitedMs = nowMs - generation.waitingSinceMs
  if (waitedMs < limits.readyWaitMsMax)
    return { generation, actions: [askForGroup(generation, nowMs)] }
  const message = `Gave up after ${Math.round(waitedMs / 1000)} s of waiting for ${waitedFor}`
  return end(generation, [{ kind: 'client-fail', error: { code: 'wait-expired', message } }])
}

function end(generation: Generation, actions: readonly GenerationAction[]): GenerationStep {
  const phase = planted.failsWithoutEnding ? generation.phase : 'ended'
  return { generation: { ...generation, phase, attempt: null }, actions }
}
