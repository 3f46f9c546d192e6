// Checks 16 and 20: what else decides over incoming connections and traffic on the cables.
import type { MachineFacts } from '../../machine-facts/machine.ts'
import { type Check, judge, pass } from '../finding.ts'
import { cableEnds, macs } from './subjects.ts'

export const firewallCheck: Check = {
  id: 'firewall',
  number: 16,
  title: 'the firewall lets node and python in',
  cites: ['kb#2101'],
  after: [],
  examine: (input) =>
    macs(input).map((facts) => {
      const { enabled, applications } = facts.firewall
      if (enabled.known && !enabled.value)
        return pass([facts.name], `the firewall of ${facts.name} is off`)
      return judge(facts.name, applications, (all) => {
        const blocked = all.filter(
          (one) => one.incoming === 'block' && /\/(node|python[0-9.]*|Python)$/.test(one.path),
        )
        if (blocked.length === 0)
          return pass([facts.name], `the firewall of ${facts.name} blocks neither node nor python`)
        const tool = '/usr/libexec/ApplicationFirewall/socketfilterfw'
        const paths = blocked.map((one) => one.path)
        return {
          machines: [facts.name],
          level: 'fail',
          evidence: `the firewall of ${facts.name} blocks incoming connections to ${paths.join(', ')}`,
          next: `Run "sudo ${tool} --unblockapp ${paths[0]}", or allow it in System Settings → Network → Firewall → Options.`,
          fix: {
            machine: facts.name,
            summary: `let ${paths.join(', ')} accept connections on ${facts.name}`,
            commands: paths.map((path) => ({ argv: [tool, '--unblockapp', path], admin: true })),
            undo: paths.map((path) => ({ argv: [tool, '--blockapp', path], admin: true })),
            lasting: 'until it is undone',
          },
        }
      })
    }),
}

export const otherTrafficCheck: Check = {
  id: 'other-traffic',
  number: 20,
  title: 'no other traffic is sent over the cable',
  cites: ['kb#424'],
  after: [],
  examine: (input) =>
    macs(input).map((facts) =>
      judge(facts.name, facts.internetSharing, (sharing) => {
        const ports = cableEnds(input).flatMap((one) =>
          one.facts === facts && one.interfaceName !== null ? [one.interfaceName] : [],
        )
        const shared = sharing.enabled
          ? sharing.devices.filter(
              (device) => ports.includes(device) || isThunderbolt(facts, device),
            )
          : []
        if (shared.length === 0)
          return pass([facts.name], `${facts.name} shares no Thunderbolt port`)
        return {
          machines: [facts.name],
          level: 'fail',
          evidence: `Internet Sharing of ${facts.name} uses ${shared.join(', ')}`,
          next: 'System Settings → General → Sharing → Internet Sharing → switch it off for Thunderbolt.',
        }
      }),
    ),
}

function isThunderbolt(facts: MachineFacts, device: string): boolean {
  return (
    facts.interfaces.known &&
    facts.interfaces.value.some((one) => one.name === device && one.kind === 'thunderbolt')
  )
}
