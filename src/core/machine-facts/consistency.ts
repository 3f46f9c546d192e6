// Cross-checks between tools that describe the same ports. When two of them disagree, interfaces were
// renamed while we looked (or after a replug), and no name from either listing can be trusted.
import type { MachineFacts } from './machine.ts'
import { thunderboltPortNumber } from './network.ts'
import { interfaceOfRdmaDevice } from './rdma.ts'
import { switchUidOfNodeGuid } from './thunderbolt.ts'

export interface Contradiction {
  readonly interface: string
  readonly detail: string
}

export function findContradictions(facts: MachineFacts): readonly Contradiction[] {
  if (!facts.hardwarePorts.known) return []
  const ports = facts.hardwarePorts.value.flatMap((port) => {
    const receptacle = thunderboltPortNumber(port.port)
    return receptacle === null ? [] : [{ ...port, receptacle }]
  })
  return ports.flatMap((port) => [
    ...addressContradictions(facts, port),
    ...deviceContradictions(facts, port),
  ])
}

interface NumberedPort {
  readonly device: string
  readonly receptacle: number
  readonly hardwareAddress: string | null
}

/** Wi-Fi may show a private address, so only Thunderbolt ports are compared. */
function addressContradictions(facts: MachineFacts, port: NumberedPort): readonly Contradiction[] {
  if (!facts.interfaces.known || port.hardwareAddress === null) return []
  const listed = facts.interfaces.value.find((one) => one.name === port.device)
  if (listed === undefined || listed.hardwareAddress === null) return []
  if (listed.hardwareAddress === port.hardwareAddress) return []
  return [
    {
      interface: port.device,
      detail: `networksetup gives Thunderbolt ${port.receptacle} as ${port.device} with ${port.hardwareAddress}, ifconfig gives ${port.device} ${listed.hardwareAddress}`,
    },
  ]
}

function deviceContradictions(facts: MachineFacts, port: NumberedPort): readonly Contradiction[] {
  if (!facts.rdma.devices.known) return []
  const device = facts.rdma.devices.value.find(
    (one) => interfaceOfRdmaDevice(one.name) === port.device,
  )
  if (device === undefined) return []
  const found: Contradiction[] = []
  if (device.portLid.known && device.portLid.value !== port.receptacle)
    found.push({
      interface: port.device,
      detail: `networksetup gives ${port.device} as Thunderbolt ${port.receptacle}, ibv_devinfo gives ${device.name} as port ${device.portLid.value}`,
    })
  const uid = device.nodeGuid.known ? switchUidOfNodeGuid(device.nodeGuid.value) : null
  const owner = facts.thunderbolt.known
    ? facts.thunderbolt.value.find((one) => one.switchUid.known && one.switchUid.value === uid)
    : undefined
  if (owner?.receptacle.known === true && owner.receptacle.value !== port.receptacle)
    found.push({
      interface: port.device,
      detail: `networksetup gives ${port.device} as Thunderbolt ${port.receptacle}, the identity of ${device.name} belongs to Thunderbolt ${owner.receptacle.value}`,
    })
  return found
}
