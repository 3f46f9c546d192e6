// Interfaces of a Linux machine from /sys/class/net. What a link is made of cannot always be seen (two
// ends of a veth look alike), so the owner's config may name the kind and speed of an interface.
import { type Fact, known, unknown } from '../../../core/machine-facts/fact.ts'
import type { InterfaceKind, NetworkInterface } from '../../../core/machine-facts/network.ts'
import type { MachineAccess, SystemAddress } from '../../../ports/machine-access.ts'
import { textOfFile } from '../outcome.ts'

export type LinkSettings = Readonly<Record<string, LinkSetting>>

export interface LinkSetting {
  readonly kind: 'thunderbolt' | 'ethernet' | 'wifi'
  readonly speedMbps?: number
}

const root = '/sys/class/net'

export async function probeLinks(
  access: MachineAccess,
  settings: LinkSettings,
): Promise<Fact<readonly NetworkInterface[]>> {
  const names = await access.listFolder(root)
  if (names === null) return unknown('not-printed', `${root} does not exist`)
  const addresses = await access.listAddresses()
  const interfaces = await Promise.all(
    names.map((name) => probeLink(access, { name, setting: settings[name], addresses })),
  )
  return known(interfaces)
}

async function probeLink(
  access: MachineAccess,
  link: {
    readonly name: string
    readonly setting: LinkSetting | undefined
    readonly addresses: readonly SystemAddress[]
  },
): Promise<NetworkInterface> {
  const folder = `${root}/${link.name}`
  const read = async (file: string): Promise<Fact<string>> => {
    const path = `${folder}/${file}`
    const text = textOfFile(path, await access.readText(path))
    return text.known ? known(text.value.trim()) : text
  }
  const entries = new Set(await access.listFolder(folder))
  const [address, mtu, state, speed, duplex, type, driver, members] = await Promise.all([
    read('address'),
    read('mtu'),
    read('operstate'),
    read('speed'),
    read('duplex'),
    read('type'),
    read('device/uevent'),
    access.listFolder(`${folder}/brif`),
  ])
  const own = link.addresses.filter((one) => one.interface === link.name)
  return {
    name: link.name,
    kind: link.setting?.kind ?? kindOf({ entries, type, driver }),
    kindFrom: link.setting === undefined ? 'system' : 'config',
    label: null,
    hardwareAddress: address.known ? address.value : null,
    ipv4: own
      .filter((one) => one.family === 'ipv4')
      .map((one) => ({ address: one.address, prefixLength: one.prefixLength })),
    ipv6: own.filter((one) => one.family === 'ipv6').map((one) => one.address),
    mtu: mtu.known && /^\d+$/.test(mtu.value) ? Number(mtu.value) : null,
    active: activeOf(state),
    speedMbps:
      link.setting?.speedMbps === undefined ? speedOf(speed) : known(link.setting.speedMbps),
    duplex:
      duplex.known && (duplex.value === 'full' || duplex.value === 'half')
        ? known(duplex.value)
        : unknown('not-printed', `${link.name} tells no duplex`),
    members: members ?? [],
    complete: true,
  }
}

/** ARPHRD numbers of the kernel: 772 is loopback, 65534 a tunnel without link layer. */
function kindOf(link: {
  readonly entries: ReadonlySet<string>
  readonly type: Fact<string>
  readonly driver: Fact<string>
}): InterfaceKind {
  const type = link.type.known ? link.type.value : ''
  if (type === '772') return 'loopback'
  if (type === '65534' || link.entries.has('tun_flags')) return 'tunnel'
  if (link.entries.has('wireless') || link.entries.has('phy80211')) return 'wifi'
  if (link.entries.has('bridge') || link.entries.has('brif')) return 'bridge'
  if (link.driver.known && /^DRIVER=thunderbolt/m.test(link.driver.value)) return 'thunderbolt'
  if (type === '1') return link.entries.has('device') ? 'ethernet' : 'virtual'
  return 'unknown'
}

function activeOf(state: Fact<string>): Fact<boolean> {
  if (!state.known) return state
  if (state.value === 'up') return known(true)
  if (state.value === 'down' || state.value === 'lowerlayerdown') return known(false)
  return unknown('not-printed', `the kernel calls the interface "${state.value}"`)
}

/** Virtual machines print -1: the speed is not known, which is not the same as slow. */
function speedOf(speed: Fact<string>): Fact<number> {
  if (!speed.known) return speed
  const mbps = Number(speed.value)
  return Number.isInteger(mbps) && mbps > 0
    ? known(mbps)
    : unknown('not-printed', `the kernel prints "${speed.value}" as the speed`)
}
