// Interfaces, ports, services, routes, bridges, sharing and firewall: captures read by hand.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { captureFolder, toolCapture } from '../../../../test/support/captures.ts'
import {
  assertCutsClaimNothingNew,
  assertGarbageIsSurvived,
} from '../../../../test/support/claims.ts'
import { known, unknown } from '../../../core/machine-facts/fact.ts'
import type { NetworkInterface } from '../../../core/machine-facts/network.ts'
import { routeInterfaceFor } from '../paths.ts'
import { parseIfconfig } from './ifconfig.ts'
import {
  parseConfiguredBridges,
  parseFirewallApplications,
  parseFirewallState,
  parseInternetSharing,
  parseNetstatRoutes,
  parseRouteGet,
} from './network-extras.ts'
import {
  labelInterfaces,
  parseHardwarePorts,
  parseServiceInfo,
  parseServiceOrder,
} from './networksetup.ts'

const folderCapture = (path: string): string => readFileSync(captureFolder(path), 'utf8')

function interfacesOf(text: string): readonly NetworkInterface[] {
  const fact = parseIfconfig(text)
  assert.ok(fact.known)
  return fact.value
}

const addresses = (interfaces: readonly NetworkInterface[]): Record<string, string> =>
  Object.fromEntries(
    interfaces.flatMap((one) =>
      one.ipv4.map((ip) => [one.name, `${ip.address}/${ip.prefixLength}`] as const),
    ),
  )

test('parseIfconfig() reads the MacBook of the matched pair', () => {
  const all = interfacesOf(folderCapture('matched-pair/macbook/ifconfig_-a.txt'))
  assert.deepEqual(addresses(all), {
    lo0: '127.0.0.1/8',
    en3: '192.168.0.1/30',
    en0: '192.168.10.127/24',
    utun0: '100.64.0.1/32',
  })
  const en3 = all.find((one) => one.name === 'en3')
  assert.equal(en3?.hardwareAddress, '36:11:22:33:44:48')
  assert.deepEqual(en3?.active, known(true))
  assert.deepEqual(en3?.duplex, known('full'))
  assert.equal(en3?.speedMbps.known, false)
  assert.deepEqual(all.find((one) => one.name === 'en1')?.active, known(false))
  assert.deepEqual(all.find((one) => one.name === 'anpi2')?.speedMbps, known(100))
  assert.equal(all.length, 21)
})

test('parseIfconfig() reads the Studio of the matched pair', () => {
  const all = interfacesOf(folderCapture('matched-pair/studio/ifconfig_-a.txt'))
  assert.deepEqual(addresses(all), {
    lo0: '127.0.0.1/8',
    en3: '192.168.0.2/30',
    en1: '192.168.10.161/24',
    en14: '169.254.250.146/16',
  })
  assert.deepEqual(all.find((one) => one.name === 'en0')?.active, known(false))
})

test('parseIfconfig() names the members of a bridge', () => {
  const technote = interfacesOf(toolCapture('ifconfig-bridge0.active.tn3205.excerpt.txt'))
  assert.deepEqual(
    technote.map((one) => [one.name, one.members]),
    [['bridge0', ['en2', 'en3', 'en4']]],
  )
  const captured = interfacesOf(toolCapture('ifconfig.tb-ports-in-bridge0-promisc.txt'))
  assert.deepEqual(captured.at(-1)?.members, ['en1', 'en2', 'en3'])
  assert.deepEqual(addresses(captured), {})
})

test('parseIfconfig() reads a self-assigned address', () => {
  const all = interfacesOf(toolCapture('ifconfig-en2.link-local.tn3205.txt'))
  assert.deepEqual(addresses(all), { en2: '169.254.205.255/16' })
})

test('labelInterfaces() takes names and kinds from networksetup, never from the number in the name', () => {
  const ports = parseHardwarePorts(
    folderCapture('macos27-pair/macbook-b/networksetup_-listallhardwareports.txt'),
  )
  assert.ok(ports.known)
  assert.deepEqual(
    ports.value.map((one) => `${one.port} = ${one.device}`),
    [
      'Ethernet Adapter (en3) = en3',
      'Thunderbolt Bridge = bridge0',
      'Wi-Fi = en0',
      'Thunderbolt 1 = en1',
      'Thunderbolt 2 = en6',
      'Thunderbolt 3 = en2',
    ],
  )
  const studioPorts = parseHardwarePorts(
    folderCapture('matched-pair/studio/networksetup_-listallhardwareports.txt'),
  )
  assert.ok(studioPorts.known)
  const labelled = labelInterfaces(
    interfacesOf(folderCapture('matched-pair/studio/ifconfig_-a.txt')),
    studioPorts.value,
  )
  const kinds = Object.fromEntries(labelled.map((one) => [one.name, one.kind]))
  assert.deepEqual(
    [
      kinds['en0'],
      kinds['en1'],
      kinds['en2'],
      kinds['en7'],
      kinds['lo0'],
      kinds['anpi0'],
      kinds['en14'],
      kinds['gif0'],
    ],
    ['ethernet', 'wifi', 'thunderbolt', 'thunderbolt', 'loopback', 'virtual', 'unknown', 'tunnel'],
  )
})

test('parseHardwarePorts() reads a Mac with USB Ethernet and a bridge', () => {
  const ports = parseHardwarePorts(
    toolCapture('networksetup-listallhardwareports.macbookpro.usb-lan-and-bridge.txt'),
  )
  assert.ok(ports.known)
  assert.deepEqual(
    ports.value.find((one) => one.device === 'en10'),
    {
      port: 'USB 10/100/1000 LAN',
      device: 'en10',
      hardwareAddress: '02:00:5e:00:53:1a',
    },
  )
  assert.equal(ports.value.length, 7)
})

test('parseServiceOrder() tells disabled services from enabled ones', () => {
  const services = parseServiceOrder(
    folderCapture('matched-pair/macbook/networksetup_-listnetworkserviceorder.txt'),
  )
  assert.ok(services.known)
  assert.deepEqual(
    services.value.map((one) => `${one.enabled ? 'on' : 'off'} ${one.name} (${one.device})`),
    [
      'on Wi-Fi (en0)',
      'off EXO Thunderbolt 1 (en1)',
      'off EXO Thunderbolt 2 (en2)',
      'on EXO Thunderbolt 3 (en3)',
    ],
  )
  const withBridge = parseServiceOrder(
    toolCapture('networksetup-listnetworkserviceorder.bridge-service-present.txt'),
  )
  assert.ok(withBridge.known)
  assert.equal(withBridge.value.length, 7)
  assert.deepEqual(withBridge.value[5], {
    name: 'Tailscale',
    enabled: true,
    hardwarePort: 'io.tailscale.ipn.macos',
    device: null,
    addressing: unknown('not-applicable', 'only Thunderbolt services are asked'),
  })
})

test('parseServiceInfo() knows how a service gets its address', () => {
  assert.deepEqual(
    parseServiceInfo(toolCapture('networksetup-getinfo.thunderbolt-service-dhcp.txt')),
    known({ kind: 'dhcp' }),
  )
  assert.deepEqual(
    parseServiceInfo(
      'Manual Configuration\nIP address: 192.168.0.1\nSubnet mask: 255.255.255.252\n',
    ),
    known({ kind: 'manual', address: '192.168.0.1', mask: '255.255.255.252' }),
  )
  assert.equal(parseServiceInfo('Konfiguration: DHCP\n').known, false)
})

test('parseNetstatRoutes() fills in the octets that netstat leaves out', () => {
  const routes = parseNetstatRoutes(toolCapture('netstat-rn-inet.two-default-routes.txt'))
  assert.ok(routes.known)
  assert.deepEqual(
    routes.value.map((one) => `${one.subnet} ${one.interface}`),
    [
      '0.0.0.0/0 en0',
      '0.0.0.0/0 bridge0',
      '0.0.0.0/0 utun2',
      '100.64.0.0/10 utun2',
      '169.254.0.0/16 en0',
      '169.254.0.0/16 bridge0',
      '198.51.100.0/24 bridge0',
      '192.0.2.0/24 en0',
    ],
  )
  assert.deepEqual(routeInterfaceFor(routes.value, '198.51.100.7'), known('bridge0'))
  assert.deepEqual(routeInterfaceFor(routes.value, '100.100.1.1'), known('utun2'))
  assert.deepEqual(routeInterfaceFor(routes.value, '8.8.8.8'), known('en0'))
  assert.equal(routeInterfaceFor([], '8.8.8.8').known, false)
})

test('parseRouteGet() reads the interface of one route', () => {
  const text =
    '   route to: 192.168.0.2\ndestination: 192.168.0.0\n       mask: 255.255.255.252\n  interface: en3\n      flags: <UP,DONE,CLONING>\n'
  assert.deepEqual(parseRouteGet(text), known('en3'))
  assert.equal(parseRouteGet('route: writing to routing socket: not in table\n').known, false)
})

test('parseConfiguredBridges() reads which bridge the settings will build again', () => {
  assert.deepEqual(
    parseConfiguredBridges(toolCapture('plutil-bridge-preferences.bridge0-members.json')),
    known([{ name: 'bridge0', members: ['en1', 'en6', 'en2'] }]),
  )
})

test('parseFirewallApplications() reads the verdict of each application', () => {
  const applications = parseFirewallApplications(toolCapture('socketfilterfw-listapps.txt'))
  assert.ok(applications.known)
  assert.equal(applications.value.length, 9)
  assert.deepEqual(
    applications.value.filter((one) => one.incoming === 'block').map((one) => one.path),
    ['/usr/libexec/sshd-session', '/usr/libexec/sshd-auth'],
  )
  assert.equal(parseFirewallApplications('Firewall is managed\n').known, false)
})

test('parseFirewallState() reads the number, not the words around it', () => {
  assert.deepEqual(parseFirewallState('Firewall is enabled. (State = 1)\n'), known(true))
  assert.deepEqual(parseFirewallState('Firewall ist deaktiviert. (State = 0)\n'), known(false))
  assert.equal(parseFirewallState('Firewall is enabled.\n').known, false)
})

test('parseInternetSharing() reads which devices are shared', () => {
  const plist = (body: string): string =>
    `<?xml version="1.0"?>\n<plist version="1.0">\n${body}\n</plist>\n`
  const sharing = plist(
    '<dict><key>NAT</key><dict><key>Enabled</key><integer>1</integer><key>SharingDevices</key><array><string>en3</string></array></dict></dict>',
  )
  assert.deepEqual(parseInternetSharing(sharing), known({ enabled: true, devices: ['en3'] }))
  assert.deepEqual(parseInternetSharing(plist('<dict/>')), known({ enabled: false, devices: [] }))
  assertCutsClaimNothingNew(sharing, parseInternetSharing)
  assertGarbageIsSurvived(sharing, parseInternetSharing)
})

const cases: readonly (readonly [string, (text: string) => unknown])[] = [
  ['matched-pair/macbook/ifconfig_-a.txt', parseIfconfig],
  ['matched-pair/studio/ifconfig_-a.txt', parseIfconfig],
  ['tools/ifconfig-bridge0.active.tn3205.excerpt.txt', parseIfconfig],
  ['tools/ifconfig-en2.link-local.tn3205.txt', parseIfconfig],
  ['tools/ifconfig.tb-ports-in-bridge0-promisc.txt', parseIfconfig],
  ['matched-pair/macbook/networksetup_-listallhardwareports.txt', parseHardwarePorts],
  ['matched-pair/studio/networksetup_-listallhardwareports.txt', parseHardwarePorts],
  ['macos27-pair/macbook-b/networksetup_-listallhardwareports.txt', parseHardwarePorts],
  ['tools/networksetup-listallhardwareports.macbookpro.usb-lan-and-bridge.txt', parseHardwarePorts],
  ['matched-pair/macbook/networksetup_-listnetworkserviceorder.txt', parseServiceOrder],
  ['matched-pair/studio/networksetup_-listnetworkserviceorder.txt', parseServiceOrder],
  ['tools/networksetup-listnetworkserviceorder.bridge-service-present.txt', parseServiceOrder],
  ['tools/networksetup-getinfo.thunderbolt-service-dhcp.txt', parseServiceInfo],
  ['tools/netstat-rn-inet.two-default-routes.txt', parseNetstatRoutes],
  ['tools/plutil-bridge-preferences.bridge0-members.json', parseConfiguredBridges],
  ['tools/socketfilterfw-listapps.txt', parseFirewallApplications],
]
for (const [path, parse] of cases)
  test(`${parse.name}() claims nothing new from ${path} cut short or damaged`, () => {
    assertCutsClaimNothingNew(folderCapture(path), parse)
    assertGarbageIsSurvived(folderCapture(path), parse)
  })
