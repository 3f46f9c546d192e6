// What the doctor says beside its twenty checks: waiting, doubts, warnings, fixes and words.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readCaptureFolders } from '../../adapters/probers/access/capture-folder.ts'
import { createMacProber } from '../../adapters/probers/mac/mac-prober.ts'
import { replay } from '../../adapters/probers/access/recording.ts'
import { captureFolder } from '../../../test/support/captures.ts'
import { diagnoseMachines, troubles } from '../../../test/support/diagnosis.ts'
import { type Changes, healthyRuntime, scriptCluster } from '../../../test/support/scripted-macs.ts'
import {
  failing,
  healthyPair,
  noDevices,
  thunderboltCapture,
  versionsCapture,
  withSickness,
} from '../../../test/support/sick-macs.ts'
import type { Finding } from './finding.ts'
import { allChecks, diagnose } from './run-doctor.ts'
import { renderDiagnosis } from './render.ts'

test('diagnose() tells what waits for what', async () => {
  const diagnosis = await withSickness({
    studio: {
      rdma_ctl_status: 'disabled\n',
      ibv_devices: noDevices,
      'ibv_devinfo_-v': 'No IB devices found\n',
    },
  })
  const devices = diagnosis.findings.find(
    (one) => one.number === 4 && one.machines.includes('studio'),
  )
  assert.equal(devices?.level, 'skip')
  assert.equal(devices?.evidence, 'waits for check 3 (RDMA is switched on)')
})

test('diagnose() lets stand what is right although its cause is not', async () => {
  const diagnosis = await withSickness({ studio: { rdma_ctl_status: 'disabled\n' } })
  const devices = diagnosis.findings.find(
    (one) => one.number === 4 && one.machines.includes('studio'),
  )
  assert.equal(devices?.level, 'pass')
})

test('diagnose() does not take a listing that breaks off for a missing address', async () => {
  const cut = (text: string): string => text.slice(0, text.indexOf('\t\t\tGID[  1]'))
  const lastDevice = (text: string): string => {
    const blocks = text.split(/(?=hca_id:)/)
    const active = blocks.findIndex((block) => block.includes('PORT_ACTIVE'))
    return [...blocks.filter((_, index) => index !== active), cut(blocks[active] ?? '')].join('')
  }
  const diagnosis = await withSickness({ studio: { 'ibv_devinfo_-v': lastDevice } })
  assert.deepEqual(troubles(diagnosis), ['12 studio unknown'])
})

test('diagnose() keeps a fault on one cable from hiding one on another', async () => {
  const cables = [{ ends: ['studio:3', 'book:2'] }, { ends: ['studio:4', 'book:3'] }] as const
  const diagnosis = await withSickness(
    {
      book: {
        'ifconfig_-a': (text) => text.replace(/\tinet 192\.168\.0\.2 .*\n/, ''),
        'ibv_devinfo_-v': (text) =>
          text
            .replace(/\t\t\tGID\[ {2}1\]:\t\t::ffff:192\.168\.0\.2\n/, '')
            .replace('GID[  1]:\t\t::ffff:192.168.0.6', 'GID[  2]:\t\t::ffff:192.168.0.6'),
      },
    },
    { ...healthyPair, cables },
  )
  assert.deepEqual(troubles(diagnosis), ['11 book fail', '12 book fail'])
})

test('diagnose() says what it could not check instead of passing it', async () => {
  const diagnosis = await withSickness({
    book: {
      rdma_ctl_status: failing('sudo: a password is required'),
      'pmset_-g': { kind: 'missing' },
      sw_vers: 'ProduktName: macOS\n',
    },
  })
  assert.deepEqual(troubles(diagnosis), ['1 book unknown', '3 book unknown', '17 book unknown'])
  const finding = diagnosis.findings.find((one) => one.number === 3 && one.level === 'unknown')
  assert.match(
    finding?.evidence ?? '',
    /needs administrator rights \(sudo: a password is required\)/,
  )
  assert.match(finding?.next ?? '', /sudo bushel doctor/)
})

test('diagnose() warns of a self-assigned address, DHCP, a bridge in the settings, FileVault and a Mac that stays off', async () => {
  const cases: readonly (readonly [string, Changes])[] = [
    [
      '11 book warn',
      {
        'ifconfig_-a': (text) =>
          text.replace('192.168.0.2 netmask 0xfffffffc', '169.254.8.2 netmask 0xffff0000'),
      },
    ],
    [
      '11 book warn',
      { 'networksetup_-getinfo_Thunderbolt~2': 'DHCP Configuration\nIP address: 192.168.0.2\n' },
    ],
    [
      '10 book warn',
      {
        'plutil_-extract_VirtualNetworkInterfaces.Bridge_json_-o_-_~Library~Preferences~SystemConfiguration~preferences.plist':
          '{"bridge0":{"Interfaces":["en11","en12"]}}',
      },
    ],
  ]
  for (const [expected, changes] of cases) {
    const found = troubles(await withSickness({ book: changes }))
    assert.ok(found.includes(expected), `${expected} in ${found.join(', ')}`)
  }
  assert.deepEqual(
    troubles(await withSickness({ studio: { fdesetup_status: 'FileVault is On.\n' } })),
    ['21 studio warn'],
  )
  assert.deepEqual(
    troubles(
      await withSickness({
        studio: {
          'pmset_-g': (text) => text.replace('autorestart          1', 'autorestart          0'),
        },
      }),
    ),
    ['21 studio warn'],
  )
  // A laptop has a battery; it is not expected to stand in a rack.
  assert.deepEqual(
    troubles(await withSickness({ book: { fdesetup_status: 'FileVault is On.\n' } })),
    [],
  )
})

test('diagnose() says that MLX lacks JACCL, and that a newer macOS prints new keys', async () => {
  const cpuOnly = JSON.stringify({ ...healthyRuntime, backends: ['ring'] })
  assert.deepEqual(troubles(await withSickness({ book: { [versionsCapture]: cpuOnly } })), [
    '23 book warn',
  ])
  const newKey = (text: string): string =>
    text.replace('"route_string_key"', '"quantum_key": "yes",\n "route_string_key"')
  const diagnosis = await withSickness({ book: { [thunderboltCapture]: newKey } })
  assert.deepEqual(troubles(diagnosis), ['22 book warn'])
  assert.match(
    diagnosis.findings.find((one) => one.number === 22 && one.level === 'warn')?.evidence ?? '',
    /quantum_key/,
  )
})

test('diagnose() works on a single Mac with a stranger at the other end', async () => {
  const [macbook] = await readCaptureFolders(captureFolder('rdma-off-pair'))
  assert.ok(macbook !== undefined)
  const diagnosis = await diagnoseMachines([macbook])
  const peer = diagnosis.findings.find((one) => one.number === 6)
  assert.equal(peer?.level, 'fail')
  assert.match(peer?.evidence ?? '', /no RDMA offered by the Mac Studio at port 1/)
  assert.equal(diagnosis.findings.find((one) => one.number === 5)?.level, 'skip')
})

test('diagnose() names whose RDMA is off in the captured pair', async () => {
  const diagnosis = await diagnoseMachines(await readCaptureFolders(captureFolder('rdma-off-pair')))
  const fails = diagnosis.findings
    .filter((one) => one.level === 'fail')
    .map((one) => `${one.number} ${one.evidence}`)
  assert.deepEqual(fails, ['6 macbook sees no RDMA offered by studio'])
})

test('diagnose() calls no cable missing while both ends see a Mac that is not named', async () => {
  const diagnosis = await diagnoseMachines(await readCaptureFolders(captureFolder('dock-pair')))
  const cabled = diagnosis.findings.find((one) => one.number === 5)
  assert.equal(cabled?.level, 'unknown')
  assert.match(
    cabled?.evidence ?? '',
    /macbook sees a Mac Studio at port 3 and studio sees a MacBook Pro at port 6/,
  )
  assert.equal(diagnosis.counts.fail, 0)
  // What several machines could not tell for one reason is said once.
  assert.match(
    renderDiagnosis(diagnosis, { verbose: false }),
    /\? check 1, macbook, studio: the captures hold no output of sw_vers\n/,
  )
})

test('renderDiagnosis() says so when nothing is wrong', async () => {
  const text = renderDiagnosis(await withSickness({}), { verbose: false })
  assert.match(text, /^Nothing is wrong: \d+ right/)
})

test('diagnose() offers fixes that say how they are taken back', async () => {
  const fixes = async (
    changes: Readonly<Record<string, Changes>>,
  ): Promise<readonly Finding['fix'][]> =>
    (await withSickness(changes)).findings.flatMap((one) => (one.fix === null ? [] : [one.fix]))
  const [sleep] = await fixes({
    studio: {
      'pmset_-g': (text) => text.replace('sleep                0', 'sleep                10'),
    },
  })
  assert.deepEqual(sleep?.commands, [{ argv: ['pmset', '-c', 'sleep', '0'], admin: true }])
  assert.deepEqual(sleep?.undo, [{ argv: ['pmset', '-c', 'sleep', '10'], admin: true }])
  const [route] = await fixes({ studio: { 'route_-n_get_192.168.0.2': '  interface: en0\n' } })
  assert.deepEqual(route?.undo[0]?.argv, [
    'route',
    '-n',
    'change',
    '192.168.0.2',
    '-interface',
    'en0',
  ])
  const [address] = await fixes({
    book: { 'ifconfig_-a': (text) => text.replace(/\tinet 192\.168\.0\.2.*\n/, '') },
  })
  assert.deepEqual(address?.undo[0]?.argv, ['ifconfig', 'en12', 'inet', '192.168.0.2', 'delete'])
})

test('allChecks() have numbers and ids of their own, and wait only for earlier ones', () => {
  assert.equal(new Set(allChecks.map((one) => one.number)).size, allChecks.length)
  assert.equal(new Set(allChecks.map((one) => one.id)).size, allChecks.length)
  for (const [index, check] of allChecks.entries())
    for (const cause of [...check.after, ...(check.afterAtPeer ?? [])])
      assert.ok(
        allChecks.findIndex((one) => one.id === cause) < index,
        `${check.id} waits for ${cause}`,
      )
})

test('renderDiagnosis() shows what is wrong and the next step, and the rest when asked', async () => {
  const diagnosis = await withSickness({
    studio: {
      'pmset_-g': (text) => text.replace('sleep                0', 'sleep                10'),
    },
  })
  const text = renderDiagnosis(diagnosis, { verbose: false })
  assert.match(
    text,
    /^✗ check 17, the Mac does not fall asleep\n {4}studio sleeps after 10 minutes.*\n {4}→ Run "sudo pmset -c sleep 0"/,
  )
  assert.match(text, /kb#2020 \(more: bushel kb detail 2020\)/)
  assert.deepEqual(diagnosis.findings.find((one) => one.number === 17)?.kbFindings, [2020])
  assert.match(text, /1 wrong, \d+ right/)
  assert.ok(!text.includes('✓') && renderDiagnosis(diagnosis, { verbose: true }).includes('✓'))
})

test('diagnose() names check 18 for a rank that our own supervisor does not know, and for too many failed starts', async () => {
  const [machine] = scriptCluster(healthyPair, {
    studio: {
      'ps_-axww_-o_pid=,ppid=,command=': (text) =>
        `${text}   77     1 /opt/bushel/python -m bushel_worker --rank 1\n   78    50 /opt/bushel/python -m bushel_worker --rank 0\n`,
    },
  })
  assert.ok(machine !== undefined)
  const facts = await createMacProber({
    name: 'studio',
    access: replay(machine.recording),
    nowMs: () => 0,
    self: { pid: 50, uid: 0 },
    runtimePython: 'python',
    expectedRankPids: () => [78],
    failedStartsThisBoot: () => 3,
  }).probeMachine()
  const { findings } = diagnose({ machines: [facts], paths: [], links: [] })
  const stale = findings.filter((one) => one.number === 18)
  assert.deepEqual(
    stale.map((one) => one.level),
    ['fail', 'fail'],
  )
  assert.match(stale[0]?.evidence ?? '', /process 77 on studio is a rank that belongs to no group/)
  assert.deepEqual(stale[0]?.fix?.commands, [{ argv: ['kill', '-TERM', '77'], admin: false }])
  assert.match(stale[1]?.evidence ?? '', /3 starts of a JACCL world have failed/)
})
