// Coming into a cluster, going out of it, and shutting others out.
import { type RosterEntry, isNamed, registerKeys, roster } from '../../core/cluster/desired.ts'
import { decodeInvitation, encodeInvitation } from '../../core/cluster/invite-code.ts'
import type { Registers } from '../../core/cluster/registers.ts'
import type { MachineId } from '../../core/ids.ts'
import type { MembershipActions } from '../../gateway/cluster/membership-routes.ts'
import type { JoinOutcome } from '../../adapters/peers/admission.ts'
import { registerEntrySchema } from '../../wire/journal-file.ts'
import type { Machine } from '../../runtime/machine.ts'
import type { LinkMeasurements } from './link-measurements.ts'
import type { Peers } from './peers.ts'

/** How long a machine that leaves waits for the others to hear of it. */
const farewellMs = 1000

type Joined = { name: string; id: MachineId; machines: number } | { refused: string }

interface Parts {
  readonly machine: Machine
  readonly peers: Peers
  readonly links: LinkMeasurements
}

type Joining = Pick<Parts, 'machine' | 'peers'>

export function membershipActions(parts: Parts): MembershipActions {
  const { machine, peers, links } = parts
  return {
    async invite(uses) {
      await peers.found()
      const { secret } = peers.invitations.create(uses)
      const code = encodeInvitation({
        inviter: machine.state.self.id,
        secret,
        port: peers.port,
        addresses: peers.ownAddresses(),
      })
      return { code }
    },
    join: (code) => join(parts, code),
    ask: (name, onWords) => ask(parts, name, onWords),
    async approve(name) {
      const newcomer = await peers.admissions.approve(name)
      if (newcomer !== null) return { name: newcomer.name, id: newcomer.machine }
      const asking = peers.admissions.asking().map((other) => other.name)
      return {
        refused:
          asking.length === 0
            ? 'No machine is asking to join'
            : `"${name}" is not asking; asking are: ${asking.join(', ')}`,
      }
    },
    asking: () => peers.admissions.asking(),
    nearby: () =>
      peers
        .nearby()
        .map(({ machine: id, name, version, host, link }) => ({ id, name, version, host, link })),
    links: () => links.links(),
    async measureLinks(milliseconds, to) {
      const found = to === null ? null : member(machine, to)
      if (found !== null && 'refused' in found) return found
      await links.measureAll(milliseconds, found?.machine ?? null)
      return { links: links.links() }
    },
    async drain(name, on) {
      const { self } = machine.state
      const found = name === self.name ? { name, machine: self.id } : member(machine, name)
      if ('refused' in found) return found
      const value = on ? { since: new Date().toISOString() } : undefined
      await new Promise<void>((resolve) => {
        machine.write([{ key: registerKeys.drain(found.machine), value }], () => resolve())
      })
      return { name: found.name, id: found.machine }
    },
    async remove(name) {
      const found = member(machine, name)
      if ('refused' in found) return found
      if (found.machine === machine.state.self.id)
        return { refused: 'To take this machine out, run "bushel leave" on it' }
      await tombstone(machine, found.machine)
      return { name: found.name, id: found.machine }
    },
    async leave() {
      if (roster(machine.state.registers).size <= 1)
        return { refused: 'This machine is in no cluster' }
      await tombstone(machine, machine.state.self.id)
      await new Promise((resolve) => setTimeout(resolve, farewellMs))
      return { name: machine.state.self.name, id: machine.state.self.id }
    },
  }
}

async function join({ machine, peers }: Joining, code: string): Promise<Joined> {
  const refusal = inCluster(machine)
  if (refusal !== null) return { refused: refusal }
  const parsed = decodeInvitation(code)
  if (parsed.kind === 'not-a-code')
    return { refused: `This is no invitation code: ${parsed.reason}` }
  const { invitation } = parsed
  if (invitation.inviter === machine.state.self.id) {
    return { refused: 'This code was made on this very machine' }
  }
  const hosts = peers.hostsOf(invitation.inviter)
  const outcome = await peers.admissions.joinWithCode(invitation, hosts)
  return adopt({ machine, peers, outcome })
}

async function ask(
  { machine, peers }: Joining,
  name: string | null,
  onWords: (words: string) => void,
): Promise<Joined> {
  const refusal = inCluster(machine)
  if (refusal !== null) return { refused: refusal }
  const nearby = peers.nearby()
  const names = nearby.map((other) => other.name).join(', ')
  if (name === null && nearby.length > 1) {
    return { refused: `Several machines are nearby (${names}); name one` }
  }
  const target = nearby.find(
    (seen) => name === null || seen.name === name || seen.machine.startsWith(name),
  )
  if (target === undefined) {
    const none = 'No other machine is nearby; use a code from "bushel invite"'
    return { refused: names === '' ? none : `"${name}" is not nearby; seen are: ${names}` }
  }
  const hosts = peers.hostsOf(target.machine)
  const outcome = await peers.admissions.joinByAsking({ machine: target.machine, hosts }, onWords)
  return adopt({ machine, peers, outcome })
}

function inCluster(machine: Machine): string | null {
  const others = roster(machine.state.registers).size - 1
  return others >= 1
    ? `This machine is already in a cluster with ${others} other(s); run "bushel leave" first`
    : null
}

async function adopt({
  machine,
  peers,
  outcome,
}: Joining & { outcome: JoinOutcome }): Promise<Joined> {
  if (outcome.kind === 'refused') return { refused: outcome.reason }
  const registers: Registers = new Map(
    outcome.entries.flatMap((entry) => {
      const parsed = registerEntrySchema.safeParse(entry)
      return parsed.success
        ? [
            [
              parsed.data[0],
              { version: parsed.data[1].version, value: parsed.data[1].value },
            ] as const,
          ]
        : []
    }),
  )
  const known = roster(registers)
  const own = known.get(machine.state.self.id)
  if (own === undefined) return { refused: 'The welcome does not name this machine; try again' }
  peers.archiveState('before-joining')
  machine.post({ kind: 'registers-replace', registers })
  machine.post({ kind: 'self-change', change: { name: own.name } })
  peers.welcomed(outcome.by)
  return { name: own.name, id: own.machine, machines: known.size }
}

/** Every admission of the machine is withdrawn; what is withdrawn never comes back. */
/** A machine of the roster by its name, its id, or the beginning of that. */
function member(machine: Machine, name: string): RosterEntry | { refused: string } {
  const all = [...roster(machine.state.registers).values()]
  const found = all.find((entry) => isNamed(entry, name))
  if (found !== undefined) return found
  const names = all.map((entry) => entry.name).join(', ') || 'none but this one'
  return { refused: `There is no machine "${name}" in this cluster; there are: ${names}` }
}

function tombstone(machine: Machine, id: MachineId): Promise<void> {
  const keys = [...machine.state.registers.keys()].filter((key) => key.startsWith(`roster/${id}/`))
  return new Promise((resolve) => {
    machine.write(
      keys.map((key) => ({ key, value: undefined })),
      resolve,
    )
  })
}
