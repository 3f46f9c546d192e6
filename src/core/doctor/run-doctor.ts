// Runs every check, lets those wait whose cause has already been named, and counts what is left.
import { findingIds } from '../citation.ts'
import type { LinkFact } from '../links/link-fact.ts'
import type { MachineFacts, PathFacts } from '../machine-facts/machine.ts'
import { buildTopology } from '../topology/topology.ts'
import { listingsCheck } from './checks/listing-checks.ts'
import { measuredLinksCheck } from './checks/link-checks.ts'
import * as linux from './checks/linux-checks.ts'
import * as addresses from './checks/address-checks.ts'
import * as firewalls from './checks/firewall-checks.ts'
import * as paths from './checks/path-checks.ts'
import * as rdma from './checks/rdma-checks.ts'
import * as system from './checks/system-checks.ts'
import * as thunderbolt from './checks/thunderbolt-checks.ts'
import type { Check, Finding, Level, Observation } from './finding.ts'

/** Causes before their consequences; people see them by number. */
export const allChecks: readonly Check[] = [
  system.systemCheck,
  thunderbolt.thunderbolt5Check,
  rdma.rdmaSwitchCheck,
  rdma.rdmaDevicesCheck,
  thunderbolt.peerCabledCheck,
  thunderbolt.peerRdmaCheck,
  thunderbolt.linkSpeedCheck,
  thunderbolt.studioPortCheck,
  rdma.portStateCheck,
  addresses.bridgeCheck,
  addresses.addressCheck,
  rdma.gidCheck,
  paths.routeCheck,
  paths.localNetworkCheck,
  paths.reachCheck,
  firewalls.firewallCheck,
  system.sleepCheck,
  system.staleRanksCheck,
  system.versionsCheck,
  firewalls.otherTrafficCheck,
  system.restartCheck,
  listingsCheck,
  rdma.jacclBuildCheck,
  measuredLinksCheck,
  linux.linuxMemoryCheck,
  linux.linuxLinksCheck,
  linux.linuxRuntimeCheck,
  linux.nvidiaDriverCheck,
  linux.nvidiaMemoryCheck,
  linux.nvidiaRuntimeCheck,
]

export interface Diagnosis {
  readonly findings: readonly Finding[]
  readonly counts: Readonly<Record<Level, number>>
}

export function diagnose(input: {
  readonly machines: readonly MachineFacts[]
  readonly paths: readonly PathFacts[]
  readonly links: readonly LinkFact[]
}): Diagnosis {
  const topology = buildTopology(input.machines)
  const blocking: Blocker[] = []
  const findings: Finding[] = []
  for (const check of allChecks)
    for (const seen of check.examine({ ...input, topology })) {
      const cause = blocking.find((one) => explains(one, check, seen))
      const shown = cause === undefined || seen.level === 'pass' ? seen : waiting(seen, cause)
      if (shown === seen && (seen.blocks ?? seen.level === 'fail')) blocking.push({ check, seen })
      findings.push(findingOf(check, shown))
    }
  findings.sort((a, b) => a.number - b.number)
  return { findings, counts: countLevels(findings) }
}

interface Blocker {
  readonly check: Check
  readonly seen: Observation
}

/** A fault of a whole machine concerns all its cables; one of a cable concerns that cable alone. */
function explains(cause: Blocker, check: Check, seen: Observation): boolean {
  if (cause.seen.cable !== undefined && cause.seen.cable !== seen.cable) return false
  const touches = (machines: readonly string[]): boolean =>
    cause.seen.machines.some((machine) => machines.includes(machine))
  if (check.after.includes(cause.check.id) && touches(seen.machines)) return true
  const ends = seen.cable?.ends.map((end) => end.machine) ?? []
  return (check.afterAtPeer ?? []).includes(cause.check.id) && touches(ends)
}

function waiting(seen: Observation, cause: Blocker): Observation {
  return {
    machines: seen.machines,
    level: 'skip',
    evidence: `waits for check ${cause.check.number} (${cause.check.title})`,
  }
}

function findingOf(check: Check, seen: Observation): Finding {
  return {
    check: check.id,
    number: check.number,
    title: check.title,
    level: seen.level,
    machines: seen.machines,
    evidence: seen.evidence,
    next: seen.next ?? null,
    fix: seen.fix ?? null,
    kbFindings: findingIds(check.cites),
  }
}

function countLevels(findings: readonly Finding[]): Record<Level, number> {
  const counts = { pass: 0, warn: 0, fail: 0, unknown: 0, skip: 0 }
  for (const { level } of findings) counts[level] += 1
  return counts
}

/** Addresses that the machines have to try towards each other before paths can be judged. */
export function pathTargets(
  machines: readonly MachineFacts[],
  port: number | null,
): ReadonlyMap<
  string,
  readonly { readonly peer: string; readonly address: string; readonly port: number | null }[]
> {
  const targets = new Map<string, { peer: string; address: string; port: number | null }[]>()
  for (const link of buildTopology(machines).links)
    for (const [index, end] of link.ends.entries()) {
      const other = link.ends[1 - index]
      if (other?.address == null) continue
      const list = targets.get(end.machine) ?? []
      targets.set(end.machine, [...list, { peer: other.machine, address: other.address, port }])
    }
  return targets
}
