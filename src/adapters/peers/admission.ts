// How a machine comes into a cluster: with a code, or by asking and being approved by a person who has
// compared four words. Both ends of both ways are here.
import type { Invitation } from '../../core/cluster/invite-code.ts'
import { fourWords } from '../../core/cluster/four-words.ts'
import type { MachineId } from '../../core/ids.ts'
import { type Hello, type JoinFrame, joinFrame } from '../../wire/peer-frames.ts'
import { type PeerConnection, peerKeyOf } from './connection.ts'
import { type Invitations, exporterLabel, invitationId, proofOf } from './invitations.ts'
import type { TlsNetwork } from './network.ts'
import type { PeerTransport } from './transport.ts'

export interface Newcomer {
  readonly machine: MachineId
  readonly name: string
  readonly publicKey: string
  readonly address: string
}

export interface AdmissionOptions {
  readonly network: () => TlsNetwork
  readonly transport: PeerTransport
  readonly invitations: Invitations
  /** Writes the newcomer into the roster and returns every register, for the welcome. */
  readonly admit: (newcomer: Newcomer) => Promise<readonly unknown[]>
  readonly note: (text: string, about: Readonly<Record<string, unknown>>) => void
}

export type JoinOutcome =
  | { readonly kind: 'welcome'; readonly entries: readonly unknown[]; readonly by: MachineId }
  | { readonly kind: 'refused'; readonly reason: string }

interface Asking {
  readonly connection: PeerConnection
  readonly newcomer: Newcomer
  readonly words: string
}

const dialMsMax = 1500
const askersMax = 32
const exporterBytes = 32

export class Admissions {
  readonly #options: AdmissionOptions
  readonly #asking = new Map<MachineId, Asking>()
  readonly #joining = new Map<PeerConnection, (frame: JoinFrame) => void>()

  constructor(options: AdmissionOptions) {
    this.#options = options
  }

  /** Machines that wait for a person's approval, with the words both sides show. */
  asking(): readonly { machine: MachineId; name: string; words: string }[] {
    return [...this.#asking.values()].map(({ newcomer, words }) => ({ ...newcomer, words }))
  }

  async approve(name: string): Promise<Newcomer | null> {
    const found = [...this.#asking.values()].find(
      ({ newcomer }) =>
        newcomer.name === name || newcomer.machine === name || newcomer.machine.startsWith(name),
    )
    if (found === undefined) return null
    this.#asking.delete(found.newcomer.machine)
    await this.#welcome(found.connection, found.newcomer)
    return found.newcomer
  }

  /** The accepting side: a frame on a join connection that was dialled to us. */
  take(connection: PeerConnection, frame: unknown): void {
    const parsed = joinFrame.safeParse(frame)
    if (!parsed.success) {
      connection.refuse('malformed', 'a join frame was not understood')
      return
    }
    const waiting = this.#joining.get(connection)
    if (waiting !== undefined) waiting(parsed.data)
    else if (parsed.data.kind === 'join-code') void this.#redeem(connection, parsed.data)
    else if (parsed.data.kind === 'join-ask') this.#queue(connection)
    else connection.refuse('malformed', `${parsed.data.kind} is not an answer to anything`)
  }

  async #redeem(
    connection: PeerConnection,
    offered: { invitation: string; proof: string },
  ): Promise<void> {
    const outcome = this.#options.invitations.redeem(offered, channelOf(connection))
    const newcomer = newcomerOf(connection)
    if (outcome.kind === 'refused') {
      this.#options.note(`refused ${newcomer.name}: ${outcome.reason}`, {
        machine: newcomer.machine,
      })
      connection.refuse(outcome.code, outcome.reason)
      return
    }
    await this.#welcome(connection, newcomer)
  }

  async #welcome(connection: PeerConnection, newcomer: Newcomer): Promise<void> {
    const entries = await this.#options.admit(newcomer)
    this.#options.note(`${newcomer.name} joined the cluster`, { machine: newcomer.machine })
    connection.send({ kind: 'welcome', entries })
    connection.socket.end()
  }

  #queue(connection: PeerConnection): void {
    for (const [machine, { connection: old }] of this.#asking)
      if (!old.isOpen) this.#asking.delete(machine)
    if (this.#asking.size >= askersMax) {
      connection.refuse('busy', 'too many machines are asking to join; try again later')
      return
    }
    const newcomer = newcomerOf(connection)
    const words = fourWords(channelOf(connection).toString('hex'))
    this.#asking.set(newcomer.machine, { connection, newcomer, words })
    connection.send({ kind: 'join-waiting' })
    this.#options.note(
      `${newcomer.name} asks to join; compare the words "${words}" and run "bushel approve ${newcomer.name}"`,
      {},
    )
  }

  /** The joining side, with a code. Addresses are tried one after the other. */
  async joinWithCode(
    invitation: Invitation,
    extraHosts: readonly { host: string; port: number }[],
  ): Promise<JoinOutcome> {
    const hosts = [
      ...invitation.addresses.map((host) => ({ host, port: invitation.port })),
      ...extraHosts,
    ]
    const connection = await this.#dialFirst(hosts, invitation.inviter)
    if (typeof connection === 'string') return { kind: 'refused', reason: connection }
    const proof = proofOf(invitation.secret, channelOf(connection))
    return this.#converse(connection, {
      kind: 'join-code',
      invitation: invitationId(invitation.secret),
      proof,
    })
  }

  /** The joining side, without one: shows the words, then waits for a person on the other side. */
  async joinByAsking(
    target: { machine: MachineId; hosts: readonly { host: string; port: number }[] },
    onWords: (words: string) => void,
  ): Promise<JoinOutcome> {
    const connection = await this.#dialFirst(target.hosts, target.machine)
    if (typeof connection === 'string') return { kind: 'refused', reason: connection }
    onWords(fourWords(channelOf(connection).toString('hex')))
    return this.#converse(connection, { kind: 'join-ask' })
  }

  async #dialFirst(
    hosts: readonly { host: string; port: number }[],
    expect: MachineId,
  ): Promise<PeerConnection | string> {
    const reasons: string[] = []
    const { network, transport } = this.#options
    const tries = hosts.map(async ({ host, port }) => {
      try {
        return await transport.dial(
          { host, port, expect, timeoutMs: dialMsMax },
          network().connectionEvents(),
        )
      } catch (error) {
        reasons.push(error instanceof Error ? error.message : String(error))
        throw error
      }
    })
    try {
      const first = await Promise.any(tries)
      // The slower ones that also connected are not needed.
      for (const other of tries)
        void other
          .then((connection) => connection !== first && connection.close('not needed'))
          .catch(() => undefined)
      return first
    } catch {
      return `the inviting machine could not be reached (${reasons.join('; ') || 'no address is known'})`
    }
  }

  #converse(connection: PeerConnection, first: JoinFrame): Promise<JoinOutcome> {
    return new Promise((resolve) => {
      const end = (outcome: JoinOutcome): void => {
        this.#joining.delete(connection)
        resolve(outcome)
        connection.close('joined')
      }
      this.#joining.set(connection, (frame) => {
        if (frame.kind === 'welcome')
          end({ kind: 'welcome', entries: frame.entries, by: connection.peer })
        else if (frame.kind === 'refused') end({ kind: 'refused', reason: frame.reason })
      })
      connection.trust()
      connection.socket.once('close', () =>
        end({ kind: 'refused', reason: 'the other machine closed the connection' }),
      )
      connection.send(this.#options.network().hello('join', connection.localLink))
      connection.send(first)
    })
  }
}

/** Secret to the two ends of this very connection. */
function channelOf(connection: PeerConnection): Buffer {
  return connection.socket.exportKeyingMaterial(exporterBytes, exporterLabel, Buffer.alloc(0))
}

function newcomerOf(connection: PeerConnection): Newcomer {
  const { peer, socket } = connection
  const hello: Hello | null = connection.hello
  const host = (socket.remoteAddress ?? '').replace(/^::ffff:/i, '')
  return {
    machine: peer,
    name: hello?.name ?? peer,
    publicKey: peerKeyOf(socket),
    address: `${host}|${hello?.port ?? 0}`,
  }
}
