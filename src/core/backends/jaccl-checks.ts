// Everything that has to hold before a JACCL world is started. A failed start can keep driver resources
// until the next restart of the Mac, so what cannot be verified counts against it.
import type { Fact } from '../machine-facts/fact.ts'
import { isLinkLocal, subnetOf } from '../machine-facts/ipv4.ts'
import type { MachineFacts } from '../machine-facts/machine.ts'
import { ipv4OfGid, jacclGidIndex } from '../machine-facts/rdma.ts'
import { thunderboltGeneration } from '../machine-facts/thunderbolt.ts'
import type { Cable, CableEnd } from '../topology/cables.ts'
import { rdmaVerdict } from '../topology/rdma-verdict.ts'
import { jacclLimits, versionAtLeast } from './limits.ts'

export interface JacclCheck {
  readonly id: JacclCheckId
  readonly result: 'pass' | 'fail' | 'unknown'
  /** What was seen, in one clause: "studio runs macOS 26.1, RDMA needs 26.2". */
  readonly evidence: string
}

export type JacclCheckId =
  | 'platform'
  | 'system'
  | 'thunderbolt'
  | 'switch'
  | 'runtime'
  | 'same-build'
  | 'same-runtime'
  | 'world-free'
  | 'shape'
  | 'link'
  | 'bridge'
  | 'address'
  | 'gid'

export function checkMachineForJaccl(
  facts: MachineFacts,
  busyMachines: readonly string[],
): readonly JacclCheck[] {
  if (facts.platform !== 'macos') return [check('platform', false, `${facts.name} is not a Mac`)]
  const generation = facts.thunderbolt.known
    ? thunderboltGeneration(facts.thunderbolt.value, facts.hardware.chip)
    : facts.thunderbolt
  return [
    fromFact('system', facts.system.version, (version) => ({
      pass: versionAtLeast(version, jacclLimits.macosVersionMin),
      evidence: `${facts.name} runs macOS ${version}; RDMA needs ${jacclLimits.macosVersionMin}`,
    })),
    fromFact('thunderbolt', generation, (found) => ({
      pass: found === 5,
      evidence: `${facts.name} has Thunderbolt ${found}; RDMA needs Thunderbolt 5`,
    })),
    fromFact('switch', facts.rdma.setting, (setting) => ({
      pass: setting === 'enabled',
      evidence: `RDMA is ${setting} on ${facts.name}`,
    })),
    fromFact('runtime', facts.runtime, (runtime) => ({
      pass: runtime.backends.includes('jaccl'),
      evidence: runtime.backends.includes('jaccl')
        ? `MLX ${runtime.mlx} on ${facts.name} holds JACCL`
        : `MLX ${runtime.mlx} on ${facts.name} was built without JACCL`,
    })),
    check(
      'world-free',
      !busyMachines.includes(facts.name),
      busyMachines.includes(facts.name)
        ? `${facts.name} already holds a JACCL world; the driver has room for one`
        : `${facts.name} holds no other JACCL world`,
    ),
  ].map((one) => (one.result === 'unknown' ? named(one, facts.name) : one))
}

export function checkAgreement(machines: readonly MachineFacts[]): readonly JacclCheck[] {
  return [
    agree('same-build', machines, (facts) => facts.system.build, 'build'),
    agree(
      'same-runtime',
      machines,
      (facts) =>
        facts.runtime.known
          ? {
              known: true,
              value: `MLX ${facts.runtime.value.mlx}, mlx-lm ${facts.runtime.value.mlxLm}`,
            }
          : facts.runtime,
      'runtime',
    ),
  ]
}

/** Cable by cable, and at both ends: RDMA on it, no bridge, one address, and that address at GID 1. */
export function checkCableForJaccl(
  cable: Cable,
  machines: readonly MachineFacts[],
): readonly JacclCheck[] {
  const where = cable.ends.map((end) => end.machine).join('–')
  const verdict = rdmaVerdict(cable, machines)
  const [a, b] = cable.ends
  const sharing = a.ipv4.some((mine) =>
    b.ipv4.some((theirs) => subnetOf(mine) === subnetOf(theirs)),
  )
  return [
    {
      id: 'link',
      result: verdict.usable ? 'pass' : verdict.obstacles.length > 0 ? 'fail' : 'unknown',
      evidence: verdict.usable
        ? `${where}: RDMA on one cable`
        : `${where}: ${[...verdict.obstacles, ...verdict.doubts].join('; ')}`,
    },
    ...cable.ends.flatMap((end) => checkEnd(end, machines)),
    check(
      'address',
      sharing,
      sharing ? `${where}: both ends are in one subnet` : `${where}: the ends share no IPv4 subnet`,
    ),
  ]
}

function checkEnd(end: CableEnd, machines: readonly MachineFacts[]): readonly JacclCheck[] {
  const facts = machines.find((one) => one.name === end.machine)
  const name = end.interface.known ? end.interface.value : null
  if (facts === undefined || name === null || !end.rdmaDevice.known) return []
  const at = `${name} of ${end.machine}`
  const bridge = facts.interfaces.known
    ? facts.interfaces.value.find((one) => one.members.includes(name))
    : undefined
  const address = end.ipv4[0]?.address
  return [
    facts.interfaces.known
      ? check(
          'bridge',
          bridge === undefined,
          bridge === undefined ? `${at} is in no bridge` : `${at} is a member of ${bridge.name}`,
        )
      : {
          id: 'bridge',
          result: 'unknown',
          evidence: `${end.machine}: ${facts.interfaces.why.detail}`,
        },
    check(
      'address',
      address !== undefined,
      address === undefined
        ? `${at} has no IPv4 address`
        : `${at} has ${address}${isLinkLocal(address) ? ' (self-assigned, changes on replug)' : ''}`,
    ),
    checkGid({
      facts,
      device: end.rdmaDevice.value,
      address,
      at: `${end.rdmaDevice.value} of ${end.machine}`,
    }),
  ]
}

function checkGid(port: {
  readonly facts: MachineFacts
  readonly device: string
  readonly address: string | undefined
  readonly at: string
}): JacclCheck {
  const { devices } = port.facts.rdma
  if (!devices.known)
    return { id: 'gid', result: 'unknown', evidence: `${port.at}: ${devices.why.detail}` }
  const device = devices.value.find((one) => one.name === port.device)
  const gid = device?.gids.find((one) => one.index === jacclGidIndex)
  const found = gid === undefined ? null : ipv4OfGid(gid)
  if (found !== null && found === port.address)
    return check('gid', true, `${port.at} has ${found} at GID ${jacclGidIndex}`)
  if (device === undefined || (gid === undefined && !device.gidsComplete))
    return { id: 'gid', result: 'unknown', evidence: `${port.at}: its addresses were not printed` }
  return check(
    'gid',
    false,
    gid === undefined
      ? `${port.at} has nothing at GID ${jacclGidIndex}`
      : `${port.at} has ${gid.address} at GID ${jacclGidIndex}, not ${port.address ?? 'an IPv4 address'}`,
  )
}

function agree(
  id: JacclCheckId,
  machines: readonly MachineFacts[],
  read: (facts: MachineFacts) => Fact<string>,
  word: string,
): JacclCheck {
  const readings = machines.map((facts) => ({ name: facts.name, fact: read(facts) }))
  const missing = readings.find((one) => !one.fact.known)
  if (missing !== undefined && !missing.fact.known)
    return { id, result: 'unknown', evidence: `${missing.name}: ${missing.fact.why.detail}` }
  const values = readings.map((one) => ({
    name: one.name,
    value: one.fact.known ? one.fact.value : '',
  }))
  const same = values.every((one) => one.value === values[0]?.value)
  return check(
    id,
    same,
    same
      ? `all run ${word} ${values[0]?.value ?? ''}`
      : values.map((one) => `${one.name} runs ${word} ${one.value}`).join(', '),
  )
}

function check(id: JacclCheckId, pass: boolean, evidence: string): JacclCheck {
  return { id, result: pass ? 'pass' : 'fail', evidence }
}

function fromFact<T>(
  id: JacclCheckId,
  fact: Fact<T>,
  judge: (value: T) => { readonly pass: boolean; readonly evidence: string },
): JacclCheck {
  if (!fact.known) return { id, result: 'unknown', evidence: fact.why.detail }
  const { pass, evidence } = judge(fact.value)
  return check(id, pass, evidence)
}

function named(one: JacclCheck, machine: string): JacclCheck {
  return { ...one, evidence: `${machine}: ${one.evidence}` }
}

export function allPass(checks: readonly JacclCheck[]): boolean {
  return checks.every((one) => one.result === 'pass')
}

/** Whether MLX's ring form of JACCL may be used: older versions lose data on several wires. */
export function ringVersionCheck(machines: readonly MachineFacts[]): JacclCheck {
  const old = machines.find(
    (facts) =>
      !facts.runtime.known ||
      !versionAtLeast(facts.runtime.value.mlx, jacclLimits.ringMlxVersionMin),
  )
  if (old === undefined)
    return check('runtime', true, `MLX is ${jacclLimits.ringMlxVersionMin} or newer everywhere`)
  return old.runtime.known
    ? check(
        'runtime',
        false,
        `MLX ${old.runtime.value.mlx} on ${old.name}; a JACCL ring needs ${jacclLimits.ringMlxVersionMin}`,
      )
    : { id: 'runtime', result: 'unknown', evidence: `${old.name}: ${old.runtime.why.detail}` }
}
