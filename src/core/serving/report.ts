// What is told of a generation afterwards: attempts, pauses, how it ended. Never what was asked or answered.
import type { DeploymentId, GenerationId } from '../ids.ts'
import type { Gap } from './gap.ts'
import type { AttemptRecord, Generation } from './generation.ts'

export interface GenerationReport {
  readonly id: GenerationId
  /** The id that the client got in its own protocol, when it differs. */
  readonly label: string | null
  readonly deployment: DeploymentId
  readonly startedMs: number
  /** Null while it goes on. */
  readonly endedMs: number | null
  /** "finished", "gone" when the client hung up, or the code of its error. */
  readonly outcome: string | null
  readonly tokens: number
  readonly attempts: readonly AttemptRecord[]
  readonly gaps: readonly Gap[]
  /** Whether what came after a resume was sure to be what an unbroken run would have said. */
  readonly exact: boolean
}

export function reportOf(
  generation: Generation,
  about: {
    label: string | null
    startedMs: number
    endedMs: number | null
    outcome: string | null
    exact: boolean
  },
): GenerationReport {
  const { request, history, gaps, sent, attempt } = generation
  const last: AttemptRecord | null =
    attempt === null
      ? null
      : {
          group: attempt.group,
          machine: attempt.machine,
          startedMs: attempt.startedMs,
          endedMs: about.endedMs ?? attempt.startedMs,
          tokensAtStart: history.at(-1)?.tokensAtEnd ?? 0,
          tokensAtEnd: sent.length,
          cause: '',
        }
  return {
    id: request.id,
    label: about.label,
    deployment: request.deployment,
    startedMs: about.startedMs,
    endedMs: about.endedMs,
    outcome: about.outcome,
    tokens: sent.length,
    attempts: last === null ? history : [...history, last],
    gaps,
    exact: about.exact,
  }
}

/** One word for why an attempt was lost, for counting. */
export function causeWord(cause: string): string {
  if (cause.startsWith('machine ')) return 'machine'
  if (/\blink\b/.test(cause)) return 'link'
  if (/stalled|no progress|said nothing/.test(cause)) return 'stall'
  if (/signal|exit code/.test(cause)) return 'process'
  if (/rank|peer|neighbour/.test(cause)) return 'rank'
  return 'other'
}
