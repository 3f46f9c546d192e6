// What each tool prints on a scripted Mac, in the shapes that the real captures show.

export interface ScriptedMac {
  readonly name: string
  readonly modelName?: string
  readonly model?: string
  readonly chip?: string
  readonly ports?: number
  /** The interface of "Thunderbolt 1"; the next ones follow. */
  readonly firstInterface?: number
}

export interface Side {
  readonly mac: ScriptedMac
  readonly port: number
  readonly address: string
  readonly peer: ScriptedMac
  readonly peerPort: number
  readonly peerAddress: string
  readonly gbps: number
  readonly via: string | null
}

export const interfaceName = (mac: ScriptedMac, port: number): string =>
  `en${(mac.firstInterface ?? 2) + port - 1}`
const portCount = (mac: ScriptedMac): number => mac.ports ?? 3
const ports = (mac: ScriptedMac): readonly number[] =>
  Array.from({ length: portCount(mac) }, (_, index) => index + 1)

/** On the office network, by the place of the Mac in its cluster. */
export const networkAddress = (index: number): string => `10.0.9.${index + 10}`

const domainOf = (mac: ScriptedMac, port: number): string =>
  `${hex(mac.name, 8)}-0000-4000-8000-${String(port).padStart(12, '0')}`.toUpperCase()
const switchUidOf = (mac: ScriptedMac, port: number): string =>
  `05AC${hex(mac.name, 8)}${String(port).padStart(4, '0')}`.toUpperCase()

function hex(text: string, digits: number): string {
  let sum = 7
  for (const letter of text) sum = (sum * 31 + letter.charCodeAt(0)) % 0xffffffff
  return sum.toString(16).padStart(digits, '0').slice(-digits)
}

export function thunderboltJson(mac: ScriptedMac, sides: readonly Side[]): string {
  const buses = ports(mac)
    .toReversed()
    .map((port) => {
      const side = sides.find((one) => one.port === port)
      const tag =
        side === undefined
          ? {
              current_speed_key: 'Up to 120 Gb/s',
              link_status_key: '0x100',
              receptacle_id_key: String(port),
              receptacle_status_key: 'receptacle_no_devices_connected',
            }
          : {
              current_speed_key: `${side.gbps} Gb/s`,
              link_status_key: '0x2',
              receptacle_id_key: String(port),
              receptacle_status_key: 'receptacle_connected',
            }
      return {
        ...(side === undefined ? {} : { _items: [itemOf(side)] }),
        _name: `thunderboltusb4_bus_${port - 1}`,
        device_name_key: mac.modelName ?? 'Mac Studio',
        domain_uuid_key: domainOf(mac, port),
        receptacle_1_tag: tag,
        route_string_key: '0',
        switch_uid_key: `0x${switchUidOf(mac, port)}`,
        vendor_name_key: 'Apple Inc.',
      }
    })
  return `${JSON.stringify({ SPThunderboltDataType: buses }, null, 2)}\n`
}

function itemOf(side: Side): object {
  const peer = {
    _name: side.peer.modelName ?? 'Mac Studio',
    device_name_key: side.peer.model ?? 'Mac15,14',
    domain_uuid_key: domainOf(side.peer, side.peerPort),
    services_title: [
      { _name: 'service_ip', protocol_id_key: 1 },
      { _name: 'unknown_xd_service', protocol_id_key: 64087 },
    ],
  }
  return side.via === null
    ? peer
    : { _items: [peer], _name: side.via, device_name_key: side.via, vendor_name_key: 'Docks Ltd.' }
}

export function ibvDevices(mac: ScriptedMac): string {
  const rows = ports(mac).map(
    (port) =>
      `    rdma_${interfaceName(mac, port)}        \t${guid(mac, port).replaceAll(':', '')}`,
  )
  return `    device          \t   node GUID\n    ------          \t----------------\n${rows.join('\n')}\n`
}

function guid(mac: ScriptedMac, port: number): string {
  const bytes = (switchUidOf(mac, port).toLowerCase().match(/../g) ?? []).toReversed().join('')
  return (bytes.match(/.{4}/g) ?? []).join(':')
}

export function ibvDevinfo(mac: ScriptedMac, sides: readonly Side[]): string {
  return ports(mac)
    .map((port) => {
      const side = sides.find((one) => one.port === port)
      const gids =
        side === undefined
          ? ['GID[  0]:\t\tfe80::1']
          : ['GID[  0]:\t\tfe80::1', `GID[  1]:\t\t::ffff:${side.address}`, 'GID[  2]:\t\tfe80::2']
      return [
        `hca_id:\trdma_${interfaceName(mac, port)}`,
        '\ttransport:\t\t\tThunderbolt (100)',
        `\tnode_guid:\t\t\t${guid(mac, port)}`,
        '\tmax_qp:\t\t\t\t11',
        '\tmax_mr:\t\t\t\t100',
        '\t\tport:\t1',
        `\t\t\tstate:\t\t\t${side === undefined ? 'PORT_DOWN (1)' : 'PORT_ACTIVE (4)'}`,
        `\t\t\tport_lid:\t\t${port}`,
        ...gids.map((gid) => `\t\t\t${gid}`),
        '',
        '',
      ].join('\n')
    })
    .join('')
}

const etherOf = (mac: ScriptedMac, port: number): string =>
  `36:${(hex(mac.name, 8).match(/../g) ?? []).join(':')}:${String(port * 4).padStart(2, '0')}`

export function hardwarePorts(mac: ScriptedMac): string {
  const rows = [
    ['Ethernet', 'en0', '02:00:00:00:00:01'],
    ['Wi-Fi', 'en1', '02:00:00:00:00:02'],
    ...ports(mac).map((port) => [
      `Thunderbolt ${port}`,
      interfaceName(mac, port),
      etherOf(mac, port),
    ]),
  ]
  const blocks = rows.map(
    ([label, device, ether]) =>
      `Hardware Port: ${label}\nDevice: ${device}\nEthernet Address: ${ether}\n`,
  )
  return `\n${blocks.join('\n')}\nVLAN Configurations\n===================\n`
}

export function serviceOrder(mac: ScriptedMac): string {
  const services = ports(mac).map(
    (port) =>
      `(${port + 1}) Thunderbolt ${port}\n(Hardware Port: Thunderbolt ${port}, Device: ${interfaceName(mac, port)})\n`,
  )
  return `An asterisk (*) denotes that a network service is disabled.\n(1) Ethernet\n(Hardware Port: Ethernet, Device: en0)\n\n${services.join('\n')}\n`
}

export function ifconfig(mac: ScriptedMac, sides: readonly Side[], index: number): string {
  const flags = 'flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500'
  const lines = [
    'lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 16384',
    '\tinet 127.0.0.1 netmask 0xff000000',
    `en0: ${flags}`,
    '\tether 02:00:00:00:00:01',
    `\tinet ${networkAddress(index)} netmask 0xffffff00 broadcast 10.0.9.255`,
    '\tmedia: autoselect (10Gbase-T <full-duplex>)',
    '\tstatus: active',
  ]
  for (const port of ports(mac)) {
    const side = sides.find((one) => one.port === port)
    lines.push(`${interfaceName(mac, port)}: ${flags}`, `\tether ${etherOf(mac, port)}`)
    if (side !== undefined)
      lines.push(`\tinet ${side.address} netmask 0xfffffffc broadcast 192.168.0.3`)
    lines.push(
      '\tmedia: autoselect <full-duplex>',
      `\tstatus: ${side === undefined ? 'inactive' : 'active'}`,
    )
  }
  return `${lines.join('\n')}\n`
}

export function routes(mac: ScriptedMac, sides: readonly Side[]): string {
  const cables = sides.map((side) => {
    const subnet = side.address.replace(/\d+$/, (last) => String(Math.floor(Number(last) / 4) * 4))
    return `${subnet}/30     link#9             UCS                   ${interfaceName(mac, side.port)}      !`
  })
  return `Routing tables\n\nInternet:\nDestination        Gateway            Flags               Netif Expire\ndefault            10.0.9.1           UGScg                 en0\n${cables.join('\n')}\n`
}

export function hardwarePage(mac: ScriptedMac): string {
  const page = {
    _name: 'hardware_overview',
    chip_type: mac.chip ?? 'Apple M3 Ultra',
    machine_model: mac.model ?? 'Mac15,14',
    machine_name: mac.modelName ?? 'Mac Studio',
    physical_memory: '96 GB',
  }
  return `${JSON.stringify({ SPHardwareDataType: [page] })}\n`
}

export function sysctlText(mac: ScriptedMac): string {
  return [
    `hw.model: ${mac.model ?? 'Mac15,14'}`,
    'hw.memsize: 103079215104',
    'hw.physicalcpu: 28',
    'hw.nperflevels: 2',
    'hw.perflevel0.physicalcpu: 20',
    'hw.perflevel0.name: Performance',
    'hw.perflevel1.physicalcpu: 8',
    'hw.perflevel1.name: Efficiency',
    `machdep.cpu.brand_string: ${mac.chip ?? 'Apple M3 Ultra'}`,
    'iogpu.wired_limit_mb: 0',
    'kern.memorystatus_vm_pressure_level: 1',
    '',
  ].join('\n')
}
