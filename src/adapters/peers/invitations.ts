// Invitations that this machine has given out: short-lived, counted, and forgotten with the daemon.
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../ports/clock.ts'

export interface OpenInvitation {
  readonly id: string
  readonly secret: string
  usesLeft: number
  readonly expiresMs: number
}

export type Admission =
  | { readonly kind: 'admitted' }
  | { readonly kind: 'refused'; readonly code: string; readonly reason: string }

const validMs = 10 * 60_000
/** Expired ones are remembered a while, so that latecomers hear "expired" instead of "unknown". */
const rememberedMs = 60 * 60_000
const wrongPerMinuteMax = 20

/** Binds a proof to one TLS connection: a proof seen elsewhere is worth nothing here. */
export const exporterLabel = 'EXPORTER-bushel-join'

export function invitationId(secret: string): string {
  return createHash('sha256').update(`bushel-invitation:${secret}`).digest('hex').slice(0, 16)
}

export function proofOf(secret: string, channel: Buffer): string {
  return createHmac('sha256', Buffer.from(secret, 'hex')).update(channel).digest('hex')
}

export class Invitations {
  readonly #clock: Clock
  readonly #open = new Map<string, OpenInvitation>()
  #wrong: number[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  create(uses: number): OpenInvitation {
    const nowMs = this.#clock.nowMs()
    for (const [id, old] of this.#open)
      if (nowMs > old.expiresMs + rememberedMs) this.#open.delete(id)
    const secret = randomBytes(16).toString('hex')
    const invitation = {
      id: invitationId(secret),
      secret,
      usesLeft: uses,
      expiresMs: nowMs + validMs,
    }
    this.#open.set(invitation.id, invitation)
    return invitation
  }

  /** Checks a proof and uses the invitation up. */
  redeem(offered: { invitation: string; proof: string }, channel: Buffer): Admission {
    const nowMs = this.#clock.nowMs()
    this.#wrong = this.#wrong.filter((atMs) => nowMs - atMs < 60_000)
    if (this.#wrong.length >= wrongPerMinuteMax) {
      return refused('too-many-tries', 'too many wrong codes were tried; wait a minute')
    }
    const open = this.#open.get(offered.invitation)
    if (open === undefined) {
      return this.#wrongTry(
        'unknown-code',
        'this code is not known here; it may be for another cluster, or the daemon was restarted',
      )
    }
    const expected = Buffer.from(proofOf(open.secret, channel), 'hex')
    const given = Buffer.from(offered.proof, 'hex')
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
      return this.#wrongTry('wrong-proof', 'the code does not fit this connection')
    }
    if (nowMs > open.expiresMs)
      return refused('expired', 'the code has expired; make a new one with "bushel invite"')
    if (open.usesLeft <= 0)
      return refused('used-up', 'the code has been used; make a new one with "bushel invite"')
    open.usesLeft -= 1
    return { kind: 'admitted' }
  }

  #wrongTry(code: string, reason: string): Admission {
    this.#wrong.push(this.#clock.nowMs())
    return refused(code, reason)
  }
}

function refused(code: string, reason: string): Admission {
  return { kind: 'refused', code, reason }
}
