// The pause a reader saw when an attempt was lost, taken apart: how long until it was noticed, how long until
// somebody took over, how long until that one had read everything again.
import type { GroupId, MachineId } from '../ids.ts'

export interface Gap {
  /** How many tokens the client had. */
  readonly atToken: number
  readonly cause: string
  /** From the last token (or the start) to the word that the attempt is lost. */
  readonly noticedMs: number
  /** Until another group could be asked. */
  readonly waitedMs: number
  /** Until the next token: reading prompt and replayed ids, and one step. */
  readonly reworkedMs: number
  readonly from: { readonly group: GroupId; readonly machine: MachineId }
  readonly to: { readonly group: GroupId; readonly machine: MachineId }
}

/** A pause of a group that was put together again while it kept the attempt, as its head tells it. */
export interface GroupPause {
  readonly cause: string
  /** Until every stage was there again. */
  readonly waitedMs: number
  /** Until what the new one lacked was computed. */
  readonly reworkedMs: number
}

/** Nothing was lost, and yet the reader waited: its group told why, or else it had too much to do. */
export function groupGap(
  told: GroupPause | null,
  about: { readonly atToken: number; readonly quietMs: number; readonly place: Gap['from'] },
): Gap {
  const { atToken, quietMs, place } = about
  const waitedMs = Math.min(told?.waitedMs ?? 0, quietMs)
  const reworkedMs = told === null ? quietMs : Math.min(told.reworkedMs, quietMs - waitedMs)
  const noticedMs = quietMs - waitedMs - reworkedMs
  const cause = told?.cause ?? 'its group paused'
  return { atToken, cause, noticedMs, waitedMs, reworkedMs, from: place, to: place }
}

/** A gap that no token has closed yet. */
export interface OpenGap {
  readonly atToken: number
  readonly cause: string
  readonly from: Gap['from']
  readonly lastMs: number
  readonly lostMs: number
}

/** Lost again before it could say a word: the reader saw one pause, with the latest cause. */
export function widenGap(open: OpenGap | null, lost: OpenGap): OpenGap {
  return open === null ? lost : { ...open, cause: lost.cause, from: lost.from }
}

export function closeGap(
  open: OpenGap,
  by: { group: GroupId; machine: MachineId; startedMs: number },
  nowMs: number,
): Gap {
  const { atToken, cause, from, lastMs, lostMs } = open
  return {
    atToken,
    cause,
    from,
    to: { group: by.group, machine: by.machine },
    noticedMs: lostMs - lastMs,
    waitedMs: by.startedMs - lostMs,
    reworkedMs: nowMs - by.startedMs,
  }
}
