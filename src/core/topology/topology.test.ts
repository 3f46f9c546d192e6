// Cabling put together from captures of both ends, and from Macs scripted for the awkward cases.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { emptyRecording, replay } from '../../adapters/probers/access/recording.ts'
import type { LinkSettings } from '../../adapters/probers/linux/links.ts'
import { createLinuxProber } from '../../adapters/probers/linux/linux-prober.ts'
import { factsOf, probeAll, toolCapture } from '../../../test/support/captures.ts'
import {
  type ScriptedCable,
  type ScriptedMac,
  scriptCluster,
} from '../../../test/support/scripted-macs.ts'
import { known } from '../machine-facts/fact.ts'
import { renderDot } from './render-dot.ts'
import { renderSvg } from './render-svg.ts'
import { renderText } from './render-text.ts'
import { type Topology, buildTopology } from './topology.ts'

async function topologyOf(folder: string): Promise<Topology> {
  return buildTopology(Object.values(await factsOf(folder)))
}

async function scripted(
  macs: readonly ScriptedMac[],
  cables: readonly ScriptedCable[],
  changes: Parameters<typeof scriptCluster>[1] = {},
): Promise<Topology> {
  return buildTopology(await probeAll(scriptCluster({ macs, cables }, changes)))
}

const three = [{ name: 'anna' }, { name: 'ben' }, { name: 'cara' }]
const triangle: readonly ScriptedCable[] = [
  { ends: ['anna:1', 'ben:1'] },
  { ends: ['ben:2', 'cara:1'] },
  { ends: ['cara:2', 'anna:2'] },
]

test('buildTopology() reconstructs the cable of the matched pair from both sides', async () => {
  const topology = await topologyOf('matched-pair')
  assert.equal(topology.cables.length, 1)
  const [cable] = topology.cables
  assert.deepEqual(
    cable?.ends.map((end) => [
      end.machine,
      end.receptacle,
      end.interface,
      end.rdmaDevice,
      end.portState,
    ]),
    [
      ['macbook', known(3), known('en3'), known('rdma_en3'), known('active')],
      ['studio', known(2), known('en3'), known('rdma_en3'), known('active')],
    ],
  )
  assert.equal(cable?.seenFrom, 'both')
  assert.deepEqual(cable?.gbps, known(80))
  assert.deepEqual(cable?.via, [])
  const links = topology.links.map((link) => [
    link.class,
    ...link.ends.map((end) => `${end.machine} ${end.interface} ${end.address}`),
  ])
  assert.deepEqual(links, [
    ['rdma', 'macbook en3 192.168.0.1', 'studio en3 192.168.0.2'],
    ['wifi', 'macbook en0 192.168.10.127', 'studio en1 192.168.10.161'],
  ])
  assert.equal(topology.rdma.mesh, true)
  assert.deepEqual(topology.rdma.ring, ['macbook', 'studio'])
  assert.deepEqual(topology.strangers, [])
})

test('buildTopology() says whose RDMA is off, seen from the other side', async () => {
  const topology = await topologyOf('rdma-off-pair')
  const [link] = topology.links
  assert.equal(link?.class, 'thunderbolt-ip')
  assert.deepEqual(link?.rdma?.obstacles, ['studio does not offer RDMA on this cable'])
  assert.deepEqual(
    link?.ends.map((end) => end.receptacle),
    [1, 2],
  )
  assert.equal(topology.rdma.mesh, false)
  assert.equal(topology.thunderbolt.mesh, true)
})

test('buildTopology() reads macOS 27: one side off, the other down', async () => {
  const [link] = (await topologyOf('macos27-pair')).links
  assert.deepEqual(
    link?.ends.map((end) => [end.machine, end.receptacle]),
    [
      ['macbook-a', 2],
      ['macbook-b', 2],
    ],
  )
  assert.deepEqual(link?.rdma?.obstacles, [
    'macbook-a does not offer RDMA on this cable',
    'rdma_en6 of macbook-b is down',
  ])
})

test('buildTopology() does not join cables whose identities were left out', async () => {
  const topology = await topologyOf('dock-pair')
  assert.deepEqual(topology.cables, [])
  assert.equal(topology.strangers.length, 4)
  assert.ok(topology.strangers.every((one) => !one.identityKnown))
  assert.deepEqual(topology.strangers.find((one) => one.via.length > 0)?.via, ['ThunderBay Flex 8'])
})

test('buildTopology() finds a dock that only one end can see', async () => {
  const topology = await scripted(three.slice(0, 2), [
    { ends: ['anna:1', 'ben:1'] },
    { ends: ['anna:2', 'ben:2'], via: 'ThunderBay Flex 8', gbps: 40 },
  ])
  assert.deepEqual(
    topology.links.slice(0, 2).map((link) => [link.class, link.via, link.gbps]),
    [
      ['rdma', [], known(80)],
      ['thunderbolt-ip', ['ThunderBay Flex 8'], known(40)],
    ],
  )
  assert.match(topology.links[1]?.rdma?.obstacles[0] ?? '', /ThunderBay Flex 8 sits between/)
  assert.deepEqual(topology.thunderbolt.multiple, [{ pair: ['anna', 'ben'], cables: 2 }])
  assert.deepEqual(topology.rdma.multiple, [])
})

test('buildTopology() counts two cables of a pair, in one order for both ends', async () => {
  const topology = await scripted(three.slice(0, 2), [
    { ends: ['anna:1', 'ben:3'] },
    { ends: ['anna:2', 'ben:1'] },
  ])
  assert.deepEqual(
    topology.cables.map((cable) => cable.ends.map((end) => end.receptacle)),
    [
      [known(1), known(3)],
      [known(2), known(1)],
    ],
  )
  assert.deepEqual(topology.rdma.multiple, [{ pair: ['anna', 'ben'], cables: 2 }])
})

test('buildTopology() sees mesh, ring and missing pairs', async () => {
  const mesh = await scripted(three, triangle)
  assert.equal(mesh.rdma.mesh, true)
  assert.deepEqual(mesh.rdma.ring, ['anna', 'ben', 'cara'])
  const four = [...three, { name: 'dora' }]
  const ring = await scripted(four, [
    { ends: ['anna:1', 'cara:1'] },
    { ends: ['cara:2', 'ben:1'] },
    { ends: ['ben:2', 'dora:1'] },
    { ends: ['dora:2', 'anna:2'] },
  ])
  assert.equal(ring.rdma.mesh, false)
  assert.deepEqual(ring.rdma.ring, ['anna', 'cara', 'ben', 'dora'])
  assert.deepEqual(ring.rdma.missingPairs, [
    ['anna', 'ben'],
    ['cara', 'dora'],
  ])
  assert.ok(ring.rdma.groups.every((group) => group.length === 2))
  const line = await scripted(three, triangle.slice(0, 2))
  assert.equal(line.rdma.ring, null)
  assert.deepEqual(line.rdma.missingPairs, [['anna', 'cara']])
  assert.deepEqual(line.rdma.groups, [
    ['anna', 'ben'],
    ['ben', 'cara'],
  ])
})

test('buildTopology() gives a Thunderbolt 4 Mac no RDMA, whatever its switch says', async () => {
  const slow = (text: string): string =>
    text.replaceAll('Up to 120 Gb/s', 'Up to 40 Gb/s').replaceAll('80 Gb/s', '40 Gb/s')
  const topology = await scripted(three.slice(0, 2), [{ ends: ['anna:1', 'ben:1'], gbps: 40 }], {
    ben: {
      'system_profiler_SPThunderboltDataType_-json': slow,
      ibv_devices: '    device          \t   node GUID\n    ------          \t----------------\n',
    },
  })
  assert.equal(topology.links[0]?.class, 'thunderbolt-ip')
  assert.deepEqual(topology.links[0]?.rdma?.obstacles, [
    'ben has Thunderbolt 4, which carries no RDMA',
  ])
})

test('buildTopology() does not take what it could not see for RDMA', async () => {
  const hung = { kind: 'timed-out', afterMs: 5000 } as const
  const topology = await scripted(three.slice(0, 2), [{ ends: ['anna:1', 'ben:1'] }], {
    ben: { ibv_devices: hung, 'ibv_devinfo_-v': hung },
  })
  assert.equal(topology.links[0]?.class, 'thunderbolt-ip')
  assert.deepEqual(topology.links[0]?.rdma?.obstacles, [])
  assert.deepEqual(topology.links[0]?.rdma?.doubts, ['ben: ibv_devices did not answer within 5 s'])
})

test('buildTopology() believes in RDMA when the state of a port is not printed but the peer sees it offered', async () => {
  const topology = await scripted(three.slice(0, 2), [{ ends: ['anna:1', 'ben:1'] }], {
    ben: { 'ibv_devinfo_-v': { kind: 'missing' } },
  })
  assert.equal(topology.links[0]?.class, 'rdma')
})

test('buildTopology() marks a cable that only one end reports', async () => {
  const unplugged = (text: string): string =>
    text.replaceAll(/"_items": \[[\s\S]*?\n {6}\],\n/g, '')
  const topology = await scripted(three.slice(0, 2), [{ ends: ['anna:1', 'ben:1'] }], {
    ben: { 'system_profiler_SPThunderboltDataType_-json': unplugged },
  })
  assert.deepEqual(topology.cables[0]?.seenFrom, ['anna'])
})

test('buildTopology() takes the class of a Linux link from the config, and leaves virtual networks out', async () => {
  const machine = (name: string, last: number, linkSettings: LinkSettings) =>
    createLinuxProber({
      name,
      nowMs: () => 0,
      self: null,
      runtimePython: null,
      linkSettings,
      access: replay({
        ...emptyRecording(),
        folders: new Map([['/sys/class/net', ['docker0', 'tb0']]]),
        files: new Map([
          ['/sys/class/net/tb0/type', { kind: 'text', text: '1\n' }],
          ['/sys/class/net/docker0/type', { kind: 'text', text: '1\n' }],
        ]),
        addresses: [
          {
            interface: 'tb0',
            family: 'ipv4',
            address: `10.77.1.${last}`,
            prefixLength: 24,
            hardwareAddress: '',
          },
          {
            interface: 'docker0',
            family: 'ipv4',
            address: `172.17.0.${last}`,
            prefixLength: 16,
            hardwareAddress: '',
          },
        ],
      }),
    }).probeMachine()
  const settings: LinkSettings = { tb0: { kind: 'thunderbolt', speedMbps: 20_000 } }
  const facts = [await machine('box', 1, settings), await machine('bax', 2, settings)]
  assert.deepEqual(
    buildTopology(facts).links.map((link) => [link.class, link.gbps, link.proof]),
    [['thunderbolt-ip', known(20), 'same-subnet']],
  )
  const plain = [await machine('box', 1, {}), await machine('bax', 2, {})]
  assert.deepEqual(buildTopology(plain).links, [])
  // Machines that tell of no cables are spoken of by their networks.
  assert.match(renderText(buildTopology(facts)), /Shapes\n {2}Network: every pair shares one\n$/)
  assert.match(renderText(buildTopology(plain)), /Network: no network in common for box–bax\n$/)
  assert.match(renderSvg(buildTopology(facts)), /<title>2 machines, 1 link<\/title>/)
})

test('buildTopology() keeps tunnels, downed interfaces and self-assigned addresses out of the networks', async () => {
  const topology = await topologyOf('matched-pair')
  const names = topology.links.flatMap((link) => link.ends.map((end) => end.interface))
  assert.ok(!names.includes('utun0') && !names.includes('en14'))
})

test('renderDot() prints the matched pair line for line as mlx.distributed_config --dot does', async () => {
  const printed = toolCapture('mlx-distributed_config.dot.reconstructed.txt')
  assert.equal(renderDot(await topologyOf('matched-pair')), printed.replace('"mbp"', '"macbook"'))
  assert.equal(
    renderDot(await topologyOf('matched-pair')),
    'graph G {\n  node [shape=rectangle];\n  a [label="macbook"];\n  b [label="studio"];\n  a -- b [label="en3/en3"]\n}\n',
  )
})

test('renderDot() marks docks, and networks between machines without a cable', async () => {
  const topology = await scripted(three, [{ ends: ['anna:1', 'ben:1'], via: 'Dock "Max"' }])
  const dot = renderDot(topology)
  assert.match(dot, /a -- b \[label="en2\/en2 via Dock \\"Max\\"", style=dashed\]/)
  assert.match(dot, /a -- c \[label="en0\/en0 Ethernet", style=dotted\]/)
})

test('renderText() names ports, devices, speeds, shapes and what is in the way', async () => {
  const text = renderText(await topologyOf('matched-pair'))
  assert.match(
    text,
    /macbook \(port 3, rdma_en3, 192\.168\.0\.1\) ── RDMA 80 Gb\/s ── studio \(port 2, rdma_en3, 192\.168\.0\.2\)/,
  )
  assert.match(text, /RDMA: every pair is cabled \(mesh\)/)
  const off = renderText(await topologyOf('rdma-off-pair'))
  assert.match(off, /no RDMA: studio does not offer RDMA on this cable/)
  assert.match(off, /RDMA: no RDMA between macbook–studio\n {2}Thunderbolt: every pair is cabled/)
  const unidentified = renderText(await topologyOf('dock-pair'))
  assert.match(
    unidentified,
    /not named, so it may be here\n(.*\n)*.*studio port 3 through ThunderBay Flex 8: MacBook Pro \(Mac16,5\)\n/,
  )
  assert.match(unidentified, /Thunderbolt: no cable was seen between macbook–studio/)
})

test('renderSvg() is one well-formed picture with every machine and link in it', async () => {
  const topology = await scripted(
    [{ name: '<anna> & "co"' }, { name: 'ben' }, { name: 'cara' }],
    [{ ends: ['ben:2', 'cara:1'] }],
  )
  const svg = renderSvg(topology)
  assert.match(svg, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"/)
  assert.match(svg, /&lt;anna&gt; &amp; &quot;co&quot;/)
  assert.ok(!svg.includes('<anna>'))
  assert.equal(svg.match(/class="card"/g)?.length, 3)
  // Three pairs share the office network; the cabled one shows its cable alone.
  assert.equal(svg.match(/class="label"/g)?.length, 3)
  assert.match(svg, /Ethernet 10 Gb\/s: &lt;anna&gt; &amp; &quot;co&quot;, ben, cara/)
  assert.ok(!/NaN|undefined|https?:\/\/(?!www\.w3\.org)/.test(svg))
  // Every opened element is closed.
  const open = svg.match(/<(?:svg|g|title|style|text)\b/g)?.length
  assert.equal(svg.match(/<\/(?:svg|g|title|style|text)>/g)?.length, open)
})
