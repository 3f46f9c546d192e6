// Thunderbolt captures against what a person reads in them.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { captureFolder, toolCapture } from '../../../../test/support/captures.ts'
import {
  assertCutsClaimNothingNew,
  assertGarbageIsSurvived,
} from '../../../../test/support/claims.ts'
import { mapFact } from '../../../core/machine-facts/fact.ts'
import {
  type ThunderboltPort,
  switchUidOfNodeGuid,
  thunderboltGeneration,
} from '../../../core/machine-facts/thunderbolt.ts'
import { known, unknown } from '../../../core/machine-facts/fact.ts'
import { thunderboltPorts } from './thunderbolt-facts.ts'
import { readThunderboltJson } from './thunderbolt-json.ts'
import { readThunderboltText } from './thunderbolt-text.ts'

const json = (text: string) =>
  mapFact(readThunderboltJson(text), (raw) => thunderboltPorts(raw.buses))
const plain = (text: string) =>
  mapFact(readThunderboltText(text), (raw) => thunderboltPorts(raw.buses))

const folderCapture = (machine: string): string =>
  readFileSync(
    join(captureFolder(machine), 'system_profiler_SPThunderboltDataType_-json.txt'),
    'utf8',
  )

function portsOf(fact: ReturnType<typeof json>): readonly ThunderboltPort[] {
  assert.ok(fact.known)
  return fact.value
}

/** One line per port, so that an expectation can be read beside the capture. */
function summary(ports: readonly ThunderboltPort[]): readonly string[] {
  return ports.map((port) => {
    const number = port.receptacle.known ? port.receptacle.value : '?'
    const speed = port.speed.known ? `${port.speed.value.kind} ${port.speed.value.gbps}` : '?'
    const occupancy = port.occupancy.known ? port.occupancy.value : '?'
    const peers = port.peers.map((peer) => {
      const rdma = peer.rdmaOffered.known ? (peer.rdmaOffered.value ? 'rdma' : 'no rdma') : 'rdma ?'
      const model = peer.model.known ? peer.model.value : '?'
      const via = peer.via.length === 0 ? '' : ` via ${peer.via.join(', ')}`
      return `${peer.name} (${model}) ${rdma}${via}`
    })
    return [
      `${number}: ${occupancy}, ${speed}`,
      ...peers,
      ...port.devices.map((one) => `[${one.name}]`),
    ].join(' · ')
  })
}

test('thunderboltPorts() reads the MacBook of the matched pair: one peer on port 3 at 80 Gb/s', () => {
  const ports = portsOf(json(folderCapture('matched-pair/macbook')))
  assert.deepEqual(summary(ports), [
    '3: connected, link 80 · Mac Studio (Mac15,14) rdma',
    '2: empty, capability 120',
    '1: empty, capability 120',
  ])
  assert.deepEqual(ports[0]?.domainUuid, known('E44FA7FC-0682-46B5-892A-6A09C908C171'))
  assert.deepEqual(ports[0]?.peers[0]?.domainUuid, known('CDF1106C-8FEF-4945-AED5-88A371543554'))
  assert.deepEqual(ports[0]?.switchUid, known('05AC1111222233D2'))
})

test('thunderboltPorts() reads the Studio of the matched pair: its peer is the MacBook, on port 2', () => {
  const ports = portsOf(json(folderCapture('matched-pair/studio')))
  assert.deepEqual(summary(ports), [
    '6: empty, capability 120',
    '5: empty, capability 120',
    '4: empty, capability 120',
    '3: empty, capability 120',
    '2: connected, link 80 · MacBook Pro (Mac16,5) rdma',
    '1: empty, capability 120',
  ])
})

test('thunderboltPorts() sees from one side that the peer has RDMA off', () => {
  assert.deepEqual(summary(portsOf(json(folderCapture('rdma-off-pair/macbook')))), [
    '3: empty, capability 120',
    '2: empty, capability 120',
    '1: connected, link 80 · Mac Studio (Mac15,14) no rdma',
  ])
})

test('thunderboltPorts() tells a disk from a peer', () => {
  assert.deepEqual(summary(portsOf(json(folderCapture('rdma-off-pair/studio')))), [
    '6: empty, capability 120',
    '5: empty, capability 120',
    '4: connected, link 80 · [Envoy Ultra]',
    '3: empty, capability 120',
    '2: connected, link 80 · MacBook Pro (Mac17,7) rdma',
    '1: empty, capability 120',
  ])
})

test('thunderboltPorts() reads macOS 27: a dock on one port, a Mac on another', () => {
  assert.deepEqual(summary(portsOf(json(folderCapture('macos27-pair/macbook-a')))), [
    '3: connected, link 80 · [SB-XTM5]',
    '2: connected, link 80 · MacBook Pro (Mac17,6) rdma',
    '1: empty, capability 120',
  ])
  assert.deepEqual(summary(portsOf(json(folderCapture('macos27-pair/macbook-b')))), [
    '3: connected, link 40 · [TBU405Pro]',
    '2: connected, link 80 · MacBook Pro (Mac17,6) no rdma',
    '1: empty, capability 120',
  ])
})

test('thunderboltPorts() finds the Mac behind a dock and names the dock; left-out keys stay unknown', () => {
  const studio = portsOf(json(folderCapture('dock-pair/studio')))
  assert.deepEqual(summary(studio), [
    '6: connected, link 80 · MacBook Pro (Mac16,5) rdma ?',
    '5: empty, capability 120',
    '4: empty, capability 120',
    '3: connected, link 40 · MacBook Pro (Mac16,5) rdma ? via ThunderBay Flex 8 · [ThunderBay Flex 8]',
    '2: connected, link 40 · [Mercury Helios 3S]',
    '1: empty, capability 120',
  ])
  assert.equal(studio[0]?.peers[0]?.domainUuid.known, false)
  assert.equal(studio[0]?.domainUuid.known, false)
  assert.deepEqual(summary(portsOf(json(folderCapture('dock-pair/macbook')))), [
    '3: connected, link 40 · Mac Studio (Mac15,14) rdma ?',
    '2: connected, link 80 · Mac Studio (Mac15,14) rdma ?',
    '1: empty, capability 120',
  ])
})

test('readThunderboltText() says the same as the JSON form of the same Mac at the same moment', () => {
  const name = 'sp-thunderbolt.macmini-m4pro.display-and-peer-at-40g.macos27'
  const fromJson = json(toolCapture(`${name}.json`))
  assert.deepEqual(plain(toolCapture(`${name}.txt`)), fromJson)
  assert.deepEqual(summary(portsOf(fromJson)), [
    '3: connected, link 20 · [Studio Display]',
    '2: connected, link 40 · MacBook Pro (Mac17,6) rdma',
    '1: empty, capability 120',
  ])
})

test('readThunderboltText() reads a Mac with nothing plugged in', () => {
  const ports = portsOf(plain(toolCapture('sp-thunderbolt.macmini-m4pro.nothing-connected.txt')))
  assert.deepEqual(summary(ports), [
    '3: empty, capability 120',
    '2: empty, capability 120',
    '1: empty, capability 120',
  ])
})

test('readThunderboltText() knows the RDMA service by its number, whatever its key is called', () => {
  const ports = portsOf(
    plain(toolCapture('sp-thunderbolt.macmini-m4pro.peer-studio-m4max.macos26.partial.txt')),
  )
  assert.deepEqual(summary(ports), [
    '3: connected, link 80 · Mac Studio (Mac16,9) rdma',
    // The capture breaks off after "Port:".
    '?: ?, ?',
  ])
})

test('readThunderboltText() reads the older form with a lane count as Thunderbolt 4', () => {
  const ports = portsOf(
    plain(toolCapture('sp-thunderbolt.macbookpro-tb4.idle.older-macos.partial.txt')),
  )
  assert.deepEqual(summary(ports), ['3: empty, capability 40', '2: empty, capability 40'])
  assert.deepEqual(thunderboltGeneration(ports, unknown('not-printed', 'no chip')), known(4))
})

test('thunderboltGeneration() reads TB4 from one empty slow port', () => {
  const ports = portsOf(
    json(toolCapture('sp-thunderbolt.macbookpro-tb4.one-bus-idle.excerpt.json')),
  )
  assert.deepEqual(summary(ports), ['3: empty, capability 40'])
  assert.deepEqual(thunderboltGeneration(ports, known('Apple M3 Max')), known(4))
})

test('thunderboltGeneration() is not misled by slow links on a Thunderbolt 5 Mac', () => {
  const mini = portsOf(
    json(toolCapture('sp-thunderbolt.macmini-m4pro.display-and-peer-at-40g.macos27.json')),
  )
  assert.deepEqual(thunderboltGeneration(mini, unknown('not-printed', '')), known(5))
  const allBusy = mini.filter(
    (port) => port.occupancy.known && port.occupancy.value === 'connected',
  )
  assert.deepEqual(thunderboltGeneration(allBusy, known('Apple M4 Pro')), known(5))
  assert.equal(thunderboltGeneration(allBusy, known('Apple M9')).known, false)
})

test('switchUidOfNodeGuid() joins the RDMA device to the Thunderbolt port', () => {
  assert.equal(switchUidOfNodeGuid('d233:2222:1111:ac05'), '05AC1111222233D2')
  assert.equal(switchUidOfNodeGuid('d2332222'), null)
})

test('readThunderboltJson() names keys that are new and does not stumble over them', () => {
  const text = folderCapture('matched-pair/macbook')
    .replace(
      '"route_string_key" : "0",',
      '"route_string_key" : "0",\n"coherent_memory_key" : "on",',
    )
    .replace('"link_status_key" : "0x2",', '"link_status_key" : "0x2",\n"lanes_key" : "4",')
  const raw = readThunderboltJson(text)
  assert.ok(raw.known)
  assert.deepEqual(raw.value.unfamiliar, [
    'SPThunderboltDataType coherent_memory_key',
    'SPThunderboltDataType receptacle lanes_key',
  ])
  assert.equal(
    summary(thunderboltPorts(raw.value.buses))[0],
    '3: connected, link 80 · Mac Studio (Mac15,14) rdma',
  )
})

test('thunderboltPorts() says that a speed or status of a future macOS is new instead of guessing', () => {
  const text = folderCapture('matched-pair/macbook')
    .replace('"80 Gb/s"', '"160 Gbit/s"')
    .replace('"receptacle_connected"', '"receptacle_negotiating"')
  const port = portsOf(json(text))[0]
  assert.ok(port !== undefined && !port.speed.known && !port.occupancy.known)
  assert.match(port.speed.why.detail, /"160 Gbit\/s" is new to Bushel/)
  assert.match(port.occupancy.why.detail, /receptacle_negotiating/)
})

test('readThunderboltText() says that another language is not understood', () => {
  const german =
    'Thunderbolt/USB4:\n\n    Thunderbolt/USB4-Bus 2:\n\n      Hersteller: Apple Inc.\n'
  const fact = readThunderboltText(german)
  assert.ok(!fact.known)
  assert.equal(fact.why.kind, 'not-understood')
  assert.match(fact.why.detail, /another language/)
})

test('readThunderboltJson() takes an empty list for a machine without Thunderbolt', () => {
  assert.deepEqual(json('{"SPThunderboltDataType": []}'), known([]))
  assert.equal(json('{"SPOtherDataType": []}').known, false)
})

for (const machine of [
  'matched-pair/macbook',
  'matched-pair/studio',
  'rdma-off-pair/macbook',
  'rdma-off-pair/studio',
  'macos27-pair/macbook-a',
  'macos27-pair/macbook-b',
  'dock-pair/macbook',
  'dock-pair/studio',
])
  test(`readThunderboltJson() claims nothing new from ${machine} cut short or damaged`, () => {
    assertCutsClaimNothingNew(folderCapture(machine), json)
    assertGarbageIsSurvived(folderCapture(machine), json)
  })

for (const name of [
  'sp-thunderbolt.macmini-m4pro.display-and-peer-at-40g.macos27.txt',
  'sp-thunderbolt.macmini-m4pro.nothing-connected.txt',
  'sp-thunderbolt.macmini-m4pro.peer-studio-m4max.macos26.partial.txt',
  'sp-thunderbolt.macbookpro-tb4.idle.older-macos.partial.txt',
])
  test(`readThunderboltText() claims nothing new from ${name} cut short or damaged`, () => {
    assertCutsClaimNothingNew(toolCapture(name), plain)
    assertGarbageIsSurvived(toolCapture(name), plain)
  })
