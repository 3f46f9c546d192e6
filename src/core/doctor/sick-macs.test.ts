// Each of the twenty ailments alone, and three at once: the doctor names exactly those.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { diagnoseMachines, troubles } from '../../../test/support/diagnosis.ts'
import {
  type Changes,
  type ScriptedCluster,
  healthyRuntime,
  peerPort,
  scriptCluster,
} from '../../../test/support/scripted-macs.ts'
import {
  failing,
  healthyPair,
  noDevices,
  thunderboltCapture,
  versionsCapture,
  withSickness,
} from '../../../test/support/sick-macs.ts'

interface Sickness {
  readonly number: number
  readonly what: string
  readonly expected: readonly string[]
  readonly evidence: RegExp
  readonly next: RegExp
  readonly changes: Readonly<Record<string, Changes>>
  readonly cluster?: ScriptedCluster
}

const sicknesses: readonly Sickness[] = [
  {
    number: 1,
    what: 'an old macOS, where the RDMA tools do not exist yet',
    expected: ['1 book fail', '1 studio+book fail'],
    evidence: /book runs macOS 26\.1; RDMA needs 26\.2/,
    next: /Update book/,
    changes: {
      book: {
        sw_vers: (text) => text.replace('26.4.1', '26.1').replace('25E253', '25B78'),
        rdma_ctl_status: { kind: 'missing' },
        ibv_devices: { kind: 'missing' },
        'ibv_devinfo_-v': { kind: 'missing' },
      },
    },
  },
  {
    number: 1,
    what: 'different builds of macOS',
    expected: ['1 studio+book fail'],
    evidence: /25E253 on studio; 25F71 on book/,
    next: /same build/,
    changes: {
      book: { sw_vers: (text) => text.replace('26.4.1', '26.5').replace('25E253', '25F71') },
    },
  },
  {
    number: 2,
    what: 'a Mac with Thunderbolt 4, its switch on and its device list empty',
    expected: ['2 book warn'],
    evidence: /Thunderbolt 4: RDMA is not possible/,
    next: /TCP ring/,
    changes: {
      book: {
        [thunderboltCapture]: (text) =>
          text.replaceAll('Up to 120 Gb/s', 'Up to 40 Gb/s').replaceAll('80 Gb/s', '40 Gb/s'),
        ibv_devices: noDevices,
        'ibv_devinfo_-v': 'No IB devices found\n',
      },
      studio: {
        [thunderboltCapture]: (text) => text.replace('80 Gb/s', '40 Gb/s').replace('64087', '2'),
        'ibv_devinfo_-v': (text) => text.replace('PORT_ACTIVE (4)', 'PORT_DOWN (1)'),
      },
    },
  },
  {
    number: 3,
    what: 'RDMA switched off: no devices here, and the peer sees none offered',
    expected: ['3 studio fail'],
    evidence: /rdma_ctl says disabled on studio/,
    next: /Recovery.*rdma_ctl enable/,
    changes: {
      studio: {
        rdma_ctl_status: 'disabled\n',
        ibv_devices: noDevices,
        'ibv_devinfo_-v': 'No IB devices found\n',
      },
      book: {
        [thunderboltCapture]: (text) => text.replace('64087', '2'),
        'ibv_devinfo_-v': (text) => text.replace('PORT_ACTIVE (4)', 'PORT_DOWN (1)'),
      },
    },
  },
  {
    number: 4,
    what: 'the switch on but no devices',
    expected: ['4 book fail'],
    evidence: /no RDMA device on book although the switch is on/,
    next: /Restart book/,
    changes: { book: { ibv_devices: noDevices, 'ibv_devinfo_-v': 'No IB devices found\n' } },
  },
  {
    number: 5,
    what: 'no cable between the Macs',
    expected: ['5 studio+book fail'],
    evidence:
      /no Thunderbolt cable joins studio and book; studio has port 1, 2, 3, 4, 5, 6 free, book has port 1, 2, 3 free/,
    next: /Connect studio and book/,
    changes: {},
    cluster: { ...healthyPair, cables: [] },
  },
  {
    number: 5,
    what: 'a dock in the middle of the only cable',
    expected: ['5 studio+book fail'],
    evidence: /joined through ThunderBay Flex 8/,
    next: /straight from port 3 of studio to port 2 of book/,
    changes: {},
    cluster: {
      ...healthyPair,
      cables: [{ ends: ['studio:3', 'book:2'], via: 'ThunderBay Flex 8', gbps: 40 }],
    },
  },
  {
    number: 6,
    what: 'a peer that does not offer RDMA although its switch is on',
    expected: ['6 book fail'],
    evidence: /studio sees no RDMA offered by book/,
    next: /Enable RDMA on book/,
    changes: {
      studio: {
        [thunderboltCapture]: (text) => text.replace('64087', '2'),
        'ibv_devinfo_-v': (text) => text.replace('PORT_ACTIVE (4)', 'PORT_DOWN (1)'),
      },
    },
  },
  {
    number: 7,
    what: 'a slow cable',
    expected: ['7 studio+book warn'],
    evidence: /runs at 40 Gb\/s instead of 80/,
    next: /marked Thunderbolt 5/,
    changes: {},
    cluster: { ...healthyPair, cables: [{ ends: ['studio:3', 'book:2'], gbps: 40 }] },
  },
  {
    number: 8,
    what: 'the Studio port beside Ethernet',
    expected: ['8 studio warn'],
    evidence: /port 1 of studio \(en2\), beside Ethernet/,
    next: /another port, such as port 2/,
    changes: {},
    cluster: { ...healthyPair, cables: [{ ends: ['studio:1', 'book:2'] }] },
  },
  {
    number: 9,
    what: 'a port that is down',
    expected: ['9 book fail'],
    evidence: /rdma_en12 of book is down although a Mac is plugged in/,
    next: /plug it in again/,
    changes: {
      book: { 'ibv_devinfo_-v': (text) => text.replace('PORT_ACTIVE (4)', 'PORT_DOWN (1)') },
    },
  },
  {
    number: 9,
    what: 'a driver that hangs',
    expected: ['9 book fail'],
    evidence: /ibv_devinfo did not answer within 5 s on book: the RDMA driver is stuck/,
    next: /if it still hangs, restart the Mac/,
    changes: { book: { 'ibv_devinfo_-v': { kind: 'timed-out', afterMs: 5000 } } },
  },
  {
    number: 10,
    what: 'a port captured by the bridge, with no address of its own',
    expected: ['10 book fail'],
    evidence: /en12 of book is a member of bridge0 and has no address of its own/,
    next: /Manage Virtual Interfaces/,
    changes: {
      book: {
        'ifconfig_-a': (text) =>
          `${text.replace(/\tinet 192\.168\.0\.2.*\n/, '')}bridge0: flags=8863<UP> mtu 1500\n\tmember: en12 flags=3<LEARNING,DISCOVER>\n\tstatus: active\n`,
        'ibv_devinfo_-v': (text) => text.replace(/\t\t\tGID\[ {2}1\].*\n/, ''),
      },
    },
  },
  {
    number: 11,
    what: 'a port without an IPv4 address',
    expected: ['11 book fail'],
    evidence: /en12 of book has no IPv4 address/,
    next: /sudo ifconfig en12 inet 192\.168\.0\.2 netmask 255\.255\.255\.252/,
    changes: {
      book: {
        'ifconfig_-a': (text) => text.replace(/\tinet 192\.168\.0\.2.*\n/, ''),
        'ibv_devinfo_-v': (text) => text.replace(/\t\t\tGID\[ {2}1\].*\n/, ''),
      },
    },
  },
  {
    number: 12,
    what: 'the IPv4 address at another GID',
    expected: ['12 studio fail'],
    evidence:
      /rdma_en4 of studio has nothing at GID 1; its IPv4 address 192\.168\.0\.1 is at GID 3/,
    next: /off and on again/,
    changes: {
      studio: {
        'ibv_devinfo_-v': (text) => text.replace('GID[  1]:\t\t::ffff', 'GID[  3]:\t\t::ffff'),
      },
    },
  },
  {
    number: 13,
    what: 'a route that leaves by the office network',
    expected: ['13 studio fail'],
    evidence:
      /studio sends packets for 192\.168\.0\.2 \(book\) over en0, not over the cable on en4/,
    next: /sudo route change 192\.168\.0\.2 -interface en4/,
    changes: {
      studio: { 'route_-n_get_192.168.0.2': '   route to: 192.168.0.2\n  interface: en0\n' },
    },
  },
  {
    number: 16,
    what: 'a firewall that blocks python',
    expected: ['16 book fail'],
    evidence: /blocks incoming connections to \/opt\/bushel\/bin\/python3\.11/,
    next: /--unblockapp/,
    changes: {
      book: {
        'socketfilterfw_--getglobalstate': 'Firewall is enabled. (State = 1)\n',
        'socketfilterfw_--listapps':
          'Total number of apps = 2\n1 : /opt/bushel/bin/python3.11\n             (Block incoming connections)\n2 : /usr/bin/ruby\n             (Block incoming connections)\n',
      },
    },
  },
  {
    number: 17,
    what: 'a Mac that falls asleep',
    expected: ['17 studio fail'],
    evidence: /studio sleeps after 10 minutes/,
    next: /pmset -c sleep 0/,
    changes: {
      studio: {
        'pmset_-g': (text) => text.replace('sleep                0', 'sleep                10'),
      },
    },
  },
  {
    number: 18,
    what: 'a rank that was left over',
    expected: ['18 book warn'],
    evidence: /process 77 on book is a rank that no running Bushel claims/,
    next: /kill 77/,
    changes: {
      book: {
        'ps_-axww_-o_pid=,ppid=,command=': (text) =>
          `${text}   77     1 /opt/bushel/python -m bushel_worker --rank 1\n`,
      },
    },
  },
  {
    number: 19,
    what: 'another MLX on one machine',
    expected: ['19 studio+book fail'],
    evidence: /MLX 0\.32\.4.* on studio; .*MLX 0\.32\.5.* on book/,
    next: /bushel setup/,
    changes: { book: { [versionsCapture]: JSON.stringify({ ...healthyRuntime, mlx: '0.32.5' }) } },
  },
  {
    number: 20,
    what: 'Internet Sharing over the cable',
    expected: ['20 studio fail'],
    evidence: /Internet Sharing of studio uses en4/,
    next: /Internet Sharing/,
    changes: {
      studio: {
        'plutil_-convert_xml1_-o_-_~Library~Preferences~SystemConfiguration~com.apple.nat.plist':
          '<plist version="1.0"><dict><key>NAT</key><dict><key>Enabled</key><integer>1</integer><key>SharingDevices</key><array><string>en4</string></array></dict></dict></plist>\n',
      },
    },
  },
]

test('diagnose() finds nothing wrong with two healthy Macs, and every check has looked', async () => {
  const diagnosis = await withSickness({})
  assert.deepEqual(troubles(diagnosis), [])
  const looked = new Set(
    diagnosis.findings.filter((one) => one.level === 'pass').map((one) => one.number),
  )
  for (let number = 1; number <= 20; number++)
    assert.ok(looked.has(number), `check ${number} looked`)
})

for (const one of sicknesses)
  test(`diagnose() names check ${one.number} alone for ${one.what}`, async () => {
    const machines = scriptCluster(one.cluster ?? healthyPair, one.changes)
    const shared = one.number === 20 ? machines.map(withSharingFile) : machines
    const diagnosis = await diagnoseMachines(shared)
    assert.deepEqual(troubles(diagnosis), one.expected)
    const finding = diagnosis.findings.find(
      (each) => each.number === one.number && each.level !== 'pass' && each.level !== 'skip',
    )
    assert.match(finding?.evidence ?? '', one.evidence)
    assert.match(finding?.next ?? '', one.next)
  })

/** The preference file exists once sharing was used. */
function withSharingFile(
  machine: ReturnType<typeof scriptCluster>[number],
): ReturnType<typeof scriptCluster>[number] {
  const converted = [...machine.recording.commands.keys()].some((name) =>
    name.startsWith('plutil_-convert'),
  )
  if (!converted) return machine
  const files = new Map(
    [...machine.recording.files].map(([path]) => [
      path,
      { kind: 'text', text: 'bplist00' } as const,
    ]),
  )
  return { ...machine, recording: { ...machine.recording, files } }
}

/** Changes what one Mac's own process finds when it connects. */
function withConnection(
  machines: ReturnType<typeof scriptCluster>,
  name: string,
  code: string,
): ReturnType<typeof scriptCluster> {
  return machines.map((machine) =>
    machine.name === name
      ? {
          ...machine,
          recording: {
            ...machine.recording,
            connections: new Map(
              [...machine.recording.connections.keys()].map((key) => [
                key,
                { kind: 'failed', code } as const,
              ]),
            ),
          },
        }
      : machine,
  )
}

test('diagnose() names check 14 alone when nothing listens at the peer', async () => {
  const refused = failing('nc: connectx to 192.168.0.2 port 28744 (tcp) failed: Connection refused')
  const machines = scriptCluster(healthyPair, {
    studio: {
      [`nc_-z_-v_-G_3_192.168.0.2_${peerPort}`]: refused,
      [`nc_-z_-v_-G_3_10.0.9.11_${peerPort}`]: refused,
    },
  })
  const diagnosis = await diagnoseMachines(withConnection(machines, 'studio', 'ECONNREFUSED'))
  assert.deepEqual(troubles(diagnosis), ['14 studio fail', '14 studio fail'])
  const finding = diagnosis.findings.find((one) => one.number === 14 && one.level === 'fail')
  assert.match(
    finding?.evidence ?? '',
    /studio cannot connect to book at 192\.168\.0\.2:28744: refused, ping is answered/,
  )
  assert.match(finding?.next ?? '', /start Bushel on book/)
})

test('diagnose() names check 15 alone when only our own process is stopped', async () => {
  const diagnosis = await diagnoseMachines(
    withConnection(scriptCluster(healthyPair), 'book', 'EHOSTUNREACH'),
  )
  assert.deepEqual(troubles(diagnosis), ['15 book fail'])
  const finding = diagnosis.findings.find((one) => one.number === 15 && one.level === 'fail')
  assert.match(finding?.next ?? '', /Local Network/)
})

test('diagnose() names exactly three ailments that come together', async () => {
  const diagnosis = await withSickness({
    studio: {
      rdma_ctl_status: 'disabled\n',
      ibv_devices: noDevices,
      'ibv_devinfo_-v': 'No IB devices found\n',
      'pmset_-g': (text) => text.replace('sleep                0', 'sleep                30'),
    },
    book: {
      'ifconfig_-a': (text) => text.replace(/\tinet 192\.168\.0\.2.*\n/, ''),
      [thunderboltCapture]: (text) => text.replace('64087', '2'),
      'ibv_devinfo_-v': (text) =>
        text.replace('PORT_ACTIVE (4)', 'PORT_DOWN (1)').replace(/\t\t\tGID\[ {2}1\].*\n/, ''),
    },
  })
  assert.deepEqual(troubles(diagnosis), ['3 studio fail', '11 book fail', '17 studio fail'])
})
