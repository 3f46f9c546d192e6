// The commands about machines, run whole on captures and on this machine.
import assert from 'node:assert/strict'
import { mkdtemp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { captureFolder } from '../../../test/support/captures.ts'
import { cli } from '../../../test/support/cli.ts'

const pair = captureFolder('matched-pair')

test('bushel topology draws captures as text, DOT and SVG, and gives them as JSON', async () => {
  const text = await cli(['topology', '--from', pair])
  assert.equal(text.code, 0)
  assert.match(text.stdout, /RDMA 80 Gb\/s/)
  assert.equal(text.stderr, '')
  const dot = await cli(['topology', '--from', pair, '--format', 'dot'])
  assert.match(dot.stdout, /^graph G \{/)
  const svg = await cli(['topology', '--from', pair, '--format', 'svg'])
  assert.match(svg.stdout, /^<svg /)
  const json = await cli(['topology', '--from', pair, '--json'])
  const topology = JSON.parse(json.stdout) as { cables: unknown[]; rdma: { mesh: boolean } }
  assert.equal(topology.cables.length, 1)
  assert.equal(topology.rdma.mesh, true)
})

test('bushel topology says what is wrong with the folder, the format or a name', async () => {
  const nowhere = await cli(['topology', '--from', '/no/such/folder'])
  assert.equal(nowhere.code, 1)
  assert.match(nowhere.stderr, /Cannot read captures from "\/no\/such\/folder"/)
  const format = await cli(['topology', '--from', pair, '--format', 'png'])
  assert.equal(format.code, 2)
  assert.match(format.stderr, /take text, dot or svg/)
  const name = await cli(['topology', '--from', pair, '--machines', 'macbook,mini'])
  assert.match(name.stderr, /No machine is called "mini"; there are macbook, studio/)
})

test('bushel topology without a cluster shows this machine and says so', async () => {
  const run = await cli(['topology', '--json'])
  assert.equal(run.code, 0)
  assert.match(run.stderr, /No cluster is running here/)
  assert.equal((JSON.parse(run.stdout) as { machines: unknown[] }).machines.length, 1)
})

test('bushel doctor ends with 1 when something is wrong, and gives findings as JSON', async () => {
  const off = await cli(['doctor', '--from', captureFolder('rdma-off-pair'), '--json'])
  assert.equal(off.code, 1)
  const { findings, counts } = JSON.parse(off.stdout) as {
    findings: { number: number; level: string; next: string }[]
    counts: { fail: number }
  }
  assert.equal(counts.fail, 1)
  assert.match(findings.find((one) => one.level === 'fail')?.next ?? '', /Enable RDMA on studio/)
  const text = await cli(['doctor', '--from', pair])
  assert.equal(text.code, 0)
  assert.match(text.stdout, /could not be checked/)
})

test('bushel doctor --fix does not touch captures, and offers nothing where nothing can be done', async () => {
  const captures = await cli(['doctor', '--from', pair, '--fix'])
  assert.equal(captures.code, 1)
  assert.match(captures.stderr, /Captures cannot be fixed/)
  if (process.platform !== 'linux') return
  const here = await cli(['doctor', '--fix', '--json'])
  assert.match(here.stderr, /nothing here that Bushel could set right/)
  assert.deepEqual(JSON.parse(here.stdout), { applied: [], declined: [], failed: [] })
  assert.deepEqual(JSON.parse((await cli(['doctor', '--undo', '--json'])).stdout), {
    applied: [],
    declined: [],
    failed: [],
  })
})

test('bushel config writes hostfiles, device matrices and ring files', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'bushel-config-'))
  try {
    const file = join(folder, 'hosts.json')
    const run = await cli([
      'config',
      '--from',
      pair,
      '--machines',
      'studio,macbook',
      '--ssh',
      'studio=studio.local',
      '--env',
      'A=b',
      '--output',
      file,
    ])
    assert.equal(run.code, 0, run.stderr)
    assert.equal(run.stdout, '')
    assert.deepEqual(JSON.parse(await readFile(file, 'utf8')), {
      backend: 'jaccl',
      envs: ['A=b'],
      hosts: [
        { ssh: 'studio.local', ips: ['192.168.10.161'], rdma: [null, 'rdma_en3'] },
        { ssh: 'macbook', ips: ['192.168.10.127'], rdma: ['rdma_en3', null] },
      ],
    })
    const devices = await cli(['config', '--from', pair, '--format', 'devices'])
    assert.equal(devices.stdout, '[[null,"rdma_en3"],["rdma_en3",null]]\n')
    const ring = await cli([
      'config',
      '--from',
      pair,
      '--backend',
      'ring',
      '--format',
      'ring',
      '--port',
      '5000',
    ])
    assert.equal(ring.stdout, '[["192.168.0.1:5000"],["192.168.0.2:5001"]]\n')
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('bushel config refuses with the reason', async () => {
  const reasons = [
    [['--backend', 'smoke'], /There is no backend "smoke"/, 2],
    [['--over', 'pigeon'], /--over takes thunderbolt or network/, 2],
    [['--ssh', 'studio'], /--ssh takes MACHINE=HOST/, 2],
    [['--format', 'ring'], /add --backend ring/, 1],
    [['--backend', 'ring', '--format', 'devices'], /uses no RDMA devices/, 1],
    [['--over', 'network', '--backend', 'jaccl'], /jaccl runs over Thunderbolt/, 1],
  ] as const
  for (const [argv, pattern, code] of reasons) {
    const run = await cli(['config', '--from', pair, ...argv])
    assert.match(run.stderr, pattern)
    assert.equal(run.code, code)
  }
  const off = await cli(['config', '--from', captureFolder('rdma-off-pair'), '--backend', 'jaccl'])
  assert.match(off.stderr, /no cable joins|lists no RDMA device/)
})

test(
  'link kinds of the config are read, and a broken config is named',
  { skip: process.platform !== 'linux' && 'needs Linux' },
  async () => {
    const home = await mkdtemp(join(tmpdir(), 'bushel-home-'))
    try {
      await mkdir(home, { recursive: true })
      await writeFile(join(home, 'config.toml'), '[links.lo]\nkind = "thunderbolt"\ngbps = 80\n')
      const run = await cli(['doctor', '--all'], home)
      assert.match(run.stdout, /lo of .* 80000 Mb\/s/)
      await writeFile(join(home, 'config.toml'), '[links.lo]\nkind = "string and cans"\n')
      const broken = await cli(['doctor'], home)
      assert.equal(broken.code, 2)
      assert.match(broken.stderr, /config\.toml: .*links\.lo\.kind/s)
    } finally {
      await rm(home, { recursive: true })
    }
  },
)
