// Network changes that the doctor may offer. They are made with ifconfig and route, so they are gone after
// a restart at the latest, and each comes with the command that takes it back at once.
import { planAddresses } from '../backends/address-plan.ts'
import { dottedMask } from '../machine-facts/ipv4.ts'
import type { EndSubject } from './checks/subjects.ts'
import type { DoctorInput, Fix } from './finding.ts'

export function bridgeFix(port: {
  readonly machine: string
  readonly bridge: string
  readonly interface: string
}): Fix {
  const change = (verb: string) => ({
    argv: ['ifconfig', port.bridge, verb, port.interface],
    admin: true,
  })
  return {
    machine: port.machine,
    summary: `take ${port.interface} out of ${port.bridge} on ${port.machine}`,
    commands: [change('deletem')],
    undo: [change('addm')],
    lasting: 'until the Mac restarts; delete the bridge in System Settings to keep it',
  }
}

/** The address that the plan for all cables gives to this end. */
export function addressFix(
  input: DoctorInput,
  subject: EndSubject,
): { readonly fix: Fix; readonly next: string } | null {
  const { facts, cable, interfaceName } = subject
  const plan = planAddresses(input.machines, input.topology.cables)
  if (plan.kind !== 'planned' || interfaceName === null) return null
  const planned = plan.cables.find((one) => one.cable === cable)
  const mine = planned?.ends[cable.ends.indexOf(subject.end)]
  if (planned === undefined || mine === undefined || planned.action === 'keep') return null
  const mask = dottedMask(mine.prefixLength)
  return {
    next: `Run "sudo ifconfig ${interfaceName} inet ${mine.address} netmask ${mask}" on ${facts.name}, or set that address in System Settings → Network to keep it.`,
    fix: {
      machine: facts.name,
      summary: `give ${interfaceName} of ${facts.name} the address ${mine.address}/${mine.prefixLength}`,
      commands: [
        { argv: ['ifconfig', interfaceName, 'inet', mine.address, 'netmask', mask], admin: true },
      ],
      undo: [{ argv: ['ifconfig', interfaceName, 'inet', mine.address, 'delete'], admin: true }],
      lasting: 'until the Mac restarts; set it in System Settings → Network to keep it',
    },
  }
}
