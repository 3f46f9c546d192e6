// Linux: a captured machine, control groups of both versions, and the machine the tests run on.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { factsOf } from '../../../../test/support/captures.ts'
import {
  assertCutsClaimNothingNew,
  assertGarbageIsSurvived,
} from '../../../../test/support/claims.ts'
import { known } from '../../../core/machine-facts/fact.ts'
import type { ReadOutcome } from '../../../ports/machine-access.ts'
import { createRealAccess } from '../access/real-access.ts'
import { emptyRecording, replay } from '../access/recording.ts'
import { parseMembership, probeGroupLimits } from './cgroups.ts'
import { parseCpuinfo, parseMeminfo, parseOsRelease } from './host.ts'
import { probeLinks } from './links.ts'
import { createLinuxProber } from './linux-prober.ts'

const text = (content: string): ReadOutcome => ({ kind: 'text', text: content })

function accessWith(files: Record<string, string>, folders: Record<string, string[]> = {}) {
  return replay({
    ...emptyRecording(),
    files: new Map(Object.entries(files).map(([path, content]) => [path, text(content)])),
    folders: new Map(Object.entries(folders)),
  })
}

test('the Linux prober reads a machine with an H200 from its captures', async () => {
  const { h200 } = await factsOf('linux')
  assert.ok(h200 !== undefined)
  assert.deepEqual(h200.system.name, known('Ubuntu'))
  assert.deepEqual(h200.system.version, known('24.04'))
  assert.deepEqual(h200.hardware.chip, known('Intel(R) Xeon(R) Processor'))
  assert.deepEqual(h200.hardware.cpuCores, known(16))
  assert.deepEqual(h200.hardware.virtual, known(true))
  assert.deepEqual(h200.memory.totalBytes, known(131_980_916 * 1024))
  assert.deepEqual(h200.memory.availableBytes, known(131_466_952 * 1024))
  assert.deepEqual(h200.memory.groupLimitBytes, known(null))
  assert.ok(h200.interfaces.known)
  assert.deepEqual(
    h200.interfaces.value.map((one) => [one.name, one.kind, one.active.known && one.active.value]),
    [
      ['eth0', 'ethernet', true],
      ['ifb0', 'virtual', false],
      ['ifb1', 'virtual', false],
      ['lo', 'loopback', false],
    ],
  )
  assert.equal(h200.interfaces.value[0]?.speedMbps.known, false)
  assert.ok(h200.gpus.known)
  assert.deepEqual(h200.gpus.value, [
    {
      index: 0,
      name: 'NVIDIA H200',
      memoryTotalBytes: known(143_771 * 1024 ** 2),
      memoryFreeBytes: known(143_156 * 1024 ** 2),
      unifiedMemory: false,
      computeCapability: known('9.0'),
      driver: known('580.159.04'),
    },
  ])
  assert.ok(!h200.ranks.processes.known)
  assert.equal(h200.ranks.processes.why.kind, 'tool-missing')
  assert.equal(h200.thunderbolt.known, false)
})

test('probeGroupLimits() takes the tightest limit of version 2 on the way to the root', async () => {
  const access = accessWith({
    '/proc/self/cgroup': '0::/service/bushel\n',
    '/sys/fs/cgroup/service/bushel/memory.max': 'max\n',
    '/sys/fs/cgroup/service/memory.max': '8589934592\n',
    '/sys/fs/cgroup/service/bushel/cpu.max': '150000 100000\n',
    '/sys/fs/cgroup/service/cpu.max': 'max 100000\n',
  })
  assert.deepEqual(await probeGroupLimits(access), {
    memoryBytes: known(8_589_934_592),
    cpus: known(1.5),
  })
})

test('probeGroupLimits() reads version 1, where a huge number means no limit', async () => {
  const access = accessWith({
    '/proc/self/cgroup': '4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/\n',
    '/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes': '4294967296\n',
    '/sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n',
    '/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us': '-1\n',
    '/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us': '100000\n',
  })
  assert.deepEqual(await probeGroupLimits(access), {
    memoryBytes: known(4_294_967_296),
    cpus: known(null),
  })
})

test('probeGroupLimits() knows that no limit is set anywhere', async () => {
  const access = accessWith({
    '/proc/self/cgroup': '4:memory:/\n',
    '/sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n',
  })
  assert.deepEqual(await probeGroupLimits(access), { memoryBytes: known(null), cpus: known(null) })
})

test('probeGroupLimits() says that it could not look when /proc is not there', async () => {
  const limits = await probeGroupLimits(accessWith({}))
  assert.ok(!limits.memoryBytes.known)
  assert.equal(limits.memoryBytes.why.kind, 'not-captured')
})

test('parseMembership() skips lines it does not know', () => {
  assert.deepEqual(parseMembership('0::/a\nnonsense\n12:pids,cpu:/b\n'), [
    { controllers: [], path: '/a' },
    { controllers: ['pids', 'cpu'], path: '/b' },
  ])
})

test('probeLinks() takes kind and speed of a link from the config where it names the interface', async () => {
  const access = accessWith(
    {
      '/sys/class/net/tbb/type': '1\n',
      '/sys/class/net/tbb/operstate': 'up\n',
      '/sys/class/net/tbb/speed': '10000\n',
      '/sys/class/net/tbb/duplex': 'full\n',
      '/sys/class/net/wlan0/type': '1\n',
      '/sys/class/net/thunderbolt0/type': '1\n',
      '/sys/class/net/thunderbolt0/device/uevent': 'DRIVER=thunderbolt-net\n',
      '/sys/class/net/br0/type': '1\n',
      '/sys/class/net/wg0/type': '65534\n',
    },
    {
      '/sys/class/net': ['br0', 'tbb', 'thunderbolt0', 'wg0', 'wlan0'],
      '/sys/class/net/wlan0': ['address', 'wireless', 'device'],
      '/sys/class/net/thunderbolt0': ['address', 'device'],
      '/sys/class/net/br0': ['address', 'bridge', 'brif'],
      '/sys/class/net/br0/brif': ['tbb'],
      '/sys/class/net/tbb': ['address', 'iflink'],
    },
  )
  const plain = await probeLinks(access, {})
  assert.ok(plain.known)
  assert.deepEqual(
    plain.value.map((one) => [one.name, one.kind]),
    [
      ['br0', 'bridge'],
      ['tbb', 'virtual'],
      ['thunderbolt0', 'thunderbolt'],
      ['wg0', 'tunnel'],
      ['wlan0', 'wifi'],
    ],
  )
  assert.deepEqual(plain.value[0]?.members, ['tbb'])
  assert.deepEqual(plain.value[1]?.speedMbps, known(10_000))
  const configured = await probeLinks(access, { tbb: { kind: 'thunderbolt', speedMbps: 80_000 } })
  assert.ok(configured.known)
  const tbb = configured.value.find((one) => one.name === 'tbb')
  assert.deepEqual(
    [tbb?.kind, tbb?.kindFrom, tbb?.speedMbps],
    ['thunderbolt', 'config', known(80_000)],
  )
})

test(
  'the Linux prober reads the machine that these tests run on',
  { skip: process.platform !== 'linux' && 'needs Linux' },
  async () => {
    const prober = createLinuxProber({
      name: 'here',
      access: createRealAccess(process.env),
      nowMs: () => 1,
      self: { pid: process.pid, uid: process.getuid?.() ?? -1 },
      runtimePython: null,
      linkSettings: {},
    })
    const facts = await prober.probeMachine()
    assert.ok(facts.memory.totalBytes.known && facts.memory.totalBytes.value > 1024 ** 3)
    assert.ok(facts.hardware.cpuCores.known && facts.hardware.cpuCores.value >= 1)
    assert.ok(facts.interfaces.known)
    const loopback = facts.interfaces.value.find((one) => one.name === 'lo')
    assert.equal(loopback?.kind, 'loopback')
    assert.ok(loopback?.ipv4.some((ip) => ip.address === '127.0.0.1' && ip.prefixLength === 8))
    assert.ok(!facts.runtime.known)
  },
)

const meminfo =
  'MemTotal:       131980916 kB\nMemFree:        130692708 kB\nMemAvailable:   131466952 kB\n'
const osRelease = 'PRETTY_NAME="Ubuntu 24.04.3 LTS"\nNAME="Ubuntu"\nVERSION_ID="24.04"\n'
const cpuinfo =
  'processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Processor\nphysical id\t: 0\ncore id\t\t: 0\n\n'
for (const [name, sample, parse] of [
  ['parseMeminfo', meminfo, parseMeminfo],
  ['parseOsRelease', osRelease, parseOsRelease],
  ['parseCpuinfo', cpuinfo, parseCpuinfo],
] as const)
  test(`${name}() claims nothing new from its file cut short or damaged`, () => {
    if (name !== 'parseCpuinfo') assertCutsClaimNothingNew(sample, parse)
    assertGarbageIsSurvived(sample, parse)
  })

test('parseCpuinfo() counts processors where the kernel names no cores', () => {
  const arm = 'processor\t: 0\nBogoMIPS\t: 2000.00\n\nprocessor\t: 1\nBogoMIPS\t: 2000.00\n\n'
  const info = parseCpuinfo(arm)
  assert.deepEqual(info.cores, known(2))
  assert.equal(info.model.known, false)
})
