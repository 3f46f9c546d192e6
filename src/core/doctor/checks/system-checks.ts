// Checks 1, 17, 18, 19 and what else a Mac needs to stay reachable: system, sleep, ranks, versions.
import { jacclLimits, versionAtLeast } from '../../backends/limits.ts'
import { isLaptop } from '../../backends/coordinator.ts'
import type { MachineFacts } from '../../machine-facts/machine.ts'
import { type Check, type Observation, cannotTell, judge, pass } from '../finding.ts'
import { macs } from './subjects.ts'

/** Each failed start of a JACCL world may keep a protection domain until the Mac restarts. */
const failedStartsMax = 3

export const systemCheck: Check = {
  id: 'system',
  number: 1,
  title: 'macOS is recent and the same everywhere',
  cites: ['kb#303', 'kb#2019'],
  after: [],
  examine: (input) => {
    const all = macs(input)
    const versions = all.map((facts) =>
      judge(facts.name, facts.system.version, (version) =>
        versionAtLeast(version, jacclLimits.macosVersionMin)
          ? pass([facts.name], `${facts.name} runs macOS ${version}`)
          : {
              machines: [facts.name],
              level: 'fail',
              evidence: `${facts.name} runs macOS ${version}; RDMA needs ${jacclLimits.macosVersionMin}`,
              next: `Update ${facts.name} in System Settings → General → Software Update.`,
            },
      ),
    )
    return [...versions, ...sameEverywhere(all, 'build')]
  },
}

/** One finding for the cluster, naming who runs what. */
function sameEverywhere(
  machines: readonly MachineFacts[],
  what: 'build' | 'runtime',
): readonly Observation[] {
  const known = machines.flatMap((facts) => {
    if (what === 'build')
      return facts.system.build.known ? [{ name: facts.name, value: facts.system.build.value }] : []
    if (!facts.runtime.known) return []
    const { python, mlx, mlxLm } = facts.runtime.value
    return [{ name: facts.name, value: `Python ${python}, MLX ${mlx}, mlx-lm ${mlxLm}` }]
  })
  if (known.length < 2) return []
  const names = known.map((one) => one.name)
  const values = new Set(known.map((one) => one.value))
  const evidence = [...values]
    .map(
      (value) =>
        `${value} on ${known
          .filter((one) => one.value === value)
          .map((one) => one.name)
          .join(', ')}`,
    )
    .join('; ')
  if (values.size === 1) return [pass(names, evidence)]
  return [
    {
      machines: names,
      level: 'fail',
      evidence,
      next:
        what === 'build'
          ? 'Update all Macs to the same build of macOS.'
          : 'Run "bushel setup" on all machines with the same version of Bushel.',
      // Machines that differ from each other can still be checked one by one.
      blocks: false,
    },
  ]
}

export const sleepCheck: Check = {
  id: 'sleep',
  number: 17,
  title: 'the Mac does not fall asleep',
  cites: ['kb#2020'],
  after: [],
  examine: (input) =>
    macs(input).map((facts) =>
      judge(facts.name, facts.power.sleepMinutes, (minutes) => {
        if (minutes === 0) return pass([facts.name], `${facts.name} never sleeps by itself`)
        const held = facts.power.sleepHeldBy.known ? facts.power.sleepHeldBy.value : null
        const undo = [{ argv: ['pmset', '-c', 'sleep', String(minutes)], admin: true }]
        return {
          machines: [facts.name],
          level: held === null ? 'fail' : 'warn',
          evidence: `${facts.name} sleeps after ${minutes} minutes${held === null ? '' : ` (kept awake for now by ${held})`}; nothing wakes it over Thunderbolt`,
          next: 'Run "sudo pmset -c sleep 0", or System Settings → Energy → prevent automatic sleeping.',
          fix: {
            machine: facts.name,
            summary: `keep ${facts.name} awake on mains power`,
            commands: [{ argv: ['pmset', '-c', 'sleep', '0'], admin: true }],
            undo,
            lasting: 'until it is undone',
          },
        }
      }),
    ),
}

export const staleRanksCheck: Check = {
  id: 'stale-ranks',
  number: 18,
  title: 'no rank of an earlier run is left',
  cites: ['kb#2033', 'kb#2011'],
  after: [],
  examine: (input) =>
    input.machines.flatMap((facts) => [
      judge(facts.name, facts.ranks.processes, (processes) => {
        const stale = processes.filter((one) => one.expected === false)
        const unclaimed = processes.filter((one) => one.expected === null)
        if (stale.length === 0 && unclaimed.length === 0)
          return pass([facts.name], `no rank is left on ${facts.name}`)
        const left = stale.length > 0 ? stale : unclaimed
        const pids = left.map((one) => String(one.pid))
        return {
          machines: [facts.name],
          level: stale.length > 0 ? 'fail' : 'warn',
          evidence: `process ${pids.join(', ')} on ${facts.name} is a rank that ${stale.length > 0 ? 'belongs to no group' : 'no running Bushel claims'}; it holds memory${facts.platform === 'macos' ? ' and perhaps RDMA resources' : ''}`,
          next: `Run "kill ${pids.join(' ')}" on ${facts.name}; if a rank does not end, restart the machine.`,
          ...(stale.length > 0
            ? {
                fix: {
                  machine: facts.name,
                  summary: `end the ranks that were left on ${facts.name}`,
                  commands: [{ argv: ['kill', '-TERM', ...pids], admin: false }],
                  undo: [],
                  lasting: 'an ended process cannot be brought back; nothing of the system changes',
                },
              }
            : {}),
        }
      }),
      ...failedStarts(facts),
    ]),
}

function failedStarts(facts: MachineFacts): readonly Observation[] {
  const { failedStartsThisBoot } = facts.ranks
  if (!failedStartsThisBoot.known || failedStartsThisBoot.value < failedStartsMax) return []
  return [
    {
      machines: [facts.name],
      level: 'fail',
      evidence: `${failedStartsThisBoot.value} starts of a JACCL world have failed on ${facts.name} since it booted, and each may keep driver resources`,
      next: `Restart ${facts.name}.`,
    },
  ]
}

export const versionsCheck: Check = {
  id: 'versions',
  number: 19,
  title: 'Python and MLX are the same everywhere',
  cites: ['kb#2019'],
  after: [],
  examine: (input) => {
    const missing = macs(input).flatMap((facts) =>
      facts.runtime.known ? [] : [cannotTell(facts.name, facts.runtime.why)],
    )
    const alone = input.machines.filter((facts) => facts.runtime.known)
    const single = alone.length === 1 && alone[0]?.runtime.known === true
    return [
      ...missing,
      ...(single
        ? [
            pass(
              [alone[0]?.name ?? ''],
              `MLX ${alone[0]?.runtime.known === true ? alone[0].runtime.value.mlx : ''} on ${alone[0]?.name ?? ''}`,
            ),
          ]
        : []),
      ...sameEverywhere(input.machines, 'runtime'),
    ]
  },
}

export const restartCheck: Check = {
  id: 'restart',
  number: 21,
  title: 'the Mac comes back after a power loss',
  cites: [],
  after: [],
  examine: (input) =>
    macs(input).flatMap((facts) => {
      if (isLaptop(facts)) return []
      const { restartAfterPowerLoss } = facts.power
      const { fileVault } = facts.system
      if (restartAfterPowerLoss.known && !restartAfterPowerLoss.value)
        return [
          {
            machines: [facts.name],
            level: 'warn' as const,
            evidence: `${facts.name} stays off after a power loss`,
            next: 'Run "sudo pmset -a autorestart 1", or System Settings → Energy → start up automatically.',
            fix: {
              machine: facts.name,
              summary: `let ${facts.name} start again after a power loss`,
              commands: [{ argv: ['pmset', '-a', 'autorestart', '1'], admin: true }],
              undo: [{ argv: ['pmset', '-a', 'autorestart', '0'], admin: true }],
              lasting: 'until it is undone',
            },
          },
        ]
      if (fileVault.known && fileVault.value === 'on')
        return [
          {
            machines: [facts.name],
            level: 'warn' as const,
            evidence: `FileVault is on, so after a restart ${facts.name} waits for a password before anything runs`,
            next: 'Be there to unlock it, or switch FileVault off on a Mac that has to come back by itself.',
          },
        ]
      if (!fileVault.known && !restartAfterPowerLoss.known) return []
      return [pass([facts.name], `${facts.name} comes back by itself after a power loss`)]
    }),
}
