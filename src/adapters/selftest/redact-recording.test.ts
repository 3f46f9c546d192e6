// Whole machines redacted: the picture of the cluster is the same, and nobody is named in it.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { readCaptureFolders, type CapturedMachine } from '../probers/access/capture-folder.ts'
import { recordingOfBundle } from './bundle-recording.ts'
import { captureFolder, probeAll } from '../../../test/support/captures.ts'
import { diagnoseMachines, troubles } from '../../../test/support/diagnosis.ts'
import { healthyPair } from '../../../test/support/sick-macs.ts'
import { scriptCluster } from '../../../test/support/scripted-macs.ts'
import { type Topology, buildTopology } from '../../core/topology/topology.ts'
import { createRedactor } from '../../core/selftest/redact.ts'
import { emptyRecording } from '../probers/access/recording.ts'
import { findLeaks, redactMachine } from './redact-recording.ts'

const newRedactor = (names: readonly string[]) =>
  createRedactor({
    digest: (text) => createHmac('sha256', 'word').update(text).digest('hex'),
    names,
  })

function redactAll(machines: readonly CapturedMachine[], names: readonly string[] = []) {
  const redactor = newRedactor(names)
  const bundles = machines.map(({ name, platform, description, recording }) =>
    redactMachine(
      { label: name, platform, observedAtMs: 0, self: description.self ?? null, recording },
      redactor,
    ),
  )
  return {
    text: JSON.stringify(bundles),
    removed: redactor.removed(),
    machines: bundles.map((bundle, index): CapturedMachine => ({
      ...(machines[index] as CapturedMachine),
      recording: recordingOfBundle(bundle),
    })),
  }
}

/** The shape of a topology without the addresses in it. */
const shape = (topology: Topology) => ({
  links: topology.links.map((link) => [
    link.class,
    link.gbps,
    link.via,
    ...link.ends.map((end) => [
      end.machine,
      end.interface,
      end.receptacle,
      end.rdmaDevice,
      end.address !== null,
    ]),
  ]),
  rdma: topology.rdma,
  strangers: topology.strangers.length,
  contradictions: topology.contradictions,
})

for (const folder of ['matched-pair', 'rdma-off-pair', 'macos27-pair', 'dock-pair'])
  test(`redactMachine() leaves the cabling of ${folder} as it was`, async () => {
    const machines = await readCaptureFolders(captureFolder(folder))
    const redacted = redactAll(machines)
    assert.deepEqual(
      shape(buildTopology(await probeAll(redacted.machines))),
      shape(buildTopology(await probeAll(machines))),
    )
    assert.deepEqual(findLeaks(redacted.text, redacted.removed), [])
  })

test('redactMachine() leaves no address of the matched pair in the file', async () => {
  const redacted = redactAll(await readCaptureFolders(captureFolder('matched-pair')))
  for (const secret of [
    '192.168.10.127',
    '192.168.10.161',
    '36:11:22:33:44:48',
    'E44FA7FC-0682-46B5-892A-6A09C908C171',
    '05AC1111222233D2',
    'd233:2222:1111:ac05',
    'fe80::1c78:2801:b40:6b27',
    '100.64.0.1',
  ])
    assert.ok(!redacted.text.includes(secret), secret)
})

test('the doctor finds two redacted Macs as healthy as before, paths included', async () => {
  const machines = scriptCluster(healthyPair)
  // Scripted commands are kept by their capture names, so their words are given back here.
  const spoken = machines.map((machine) => ({
    ...machine,
    recording: {
      ...machine.recording,
      commands: new Map(
        [...machine.recording.commands].map(([name, command]) => [
          name,
          { ...command, argv: name.replaceAll('~', '/').split('_') },
        ]),
      ),
    },
  }))
  assert.deepEqual(troubles(await diagnoseMachines(machines)), [])
  const redacted = redactAll(spoken)
  const diagnosis = await diagnoseMachines(redacted.machines)
  const paths = diagnosis.findings.filter((one) => [11, 12, 13, 14].includes(one.number))
  assert.ok(paths.length >= 6 && paths.every((one) => one.level === 'pass'), JSON.stringify(paths))
})

function machineWith(argv: readonly string[], stdout: string) {
  const commands = new Map([
    ['x', { argv, outcome: { kind: 'exited', exitCode: 0, stdout, stderr: '' } as const }],
  ])
  const machine = redactMachine(
    {
      label: 'm',
      platform: 'macos',
      observedAtMs: 0,
      self: { pid: 40, uid: 501 },
      recording: { ...emptyRecording(), commands },
    },
    newRedactor([]),
  )
  return machine.commands[0]?.stdout ?? ''
}

test('redactMachine() keeps of the processes only ranks and our own parents, by program', () => {
  const listing =
    '    1     0 /sbin/launchd\n   30     1 /Applications/iTerm.app/Contents/MacOS/iTerm2 --secret x\n   40    30 node bushel up --api-key hunter2\n   50     1 /Applications/Diary.app/Contents/MacOS/Diary\n   60    40 /Users/bob/py -m bushel_worker --token abc\n'
  assert.equal(
    machineWith(['ps', '-axww', '-o', 'pid=,ppid=,command='], listing),
    '1 0 launchd\n30 1 /iTerm.app/Contents/MacOS/\n40 30 node\n60 40 py -m bushel_worker\n',
  )
})

test('redactMachine() keeps of the firewall list only node and python', () => {
  const listing =
    'Total number of apps = 2\n1 : /Users/bob/Diary.app\n             (Allow incoming connections)\n2 : /Users/bob/.nvm/bin/node\n             (Block incoming connections)\n'
  assert.equal(
    machineWith(['/usr/libexec/ApplicationFirewall/socketfilterfw', '--listapps'], listing),
    'Total number of apps = 2\n2 : /bin/node\n             (Block incoming connections)\n',
  )
})

test('redactMachine() drops the Wi-Fi password that lies in the sharing settings', () => {
  const settings =
    '<?xml version="1.0"?><plist version="1.0"><dict><key>NAT</key><dict><key>AirPort</key><dict><key>NetworkName</key><string>Bobs Net</string><key>NetworkPassword</key><data>aHVudGVyMg==</data></dict><key>Enabled</key><integer>1</integer><key>SharingDevices</key><array><string>en3</string></array></dict></dict></plist>'
  const text = machineWith(
    [
      'plutil',
      '-convert',
      'xml1',
      '-o',
      '-',
      '/Library/Preferences/SystemConfiguration/com.apple.nat.plist',
    ],
    settings,
  )
  assert.ok(!text.includes('Bobs') && !text.includes('aHVudGVyMg'))
  assert.match(text, /<integer>1<\/integer>.*<string>en3<\/string>/)
})

test('redactMachine() recognises the shortened addresses of netstat', () => {
  const table =
    'Destination        Gateway            Flags               Netif Expire\n192.168.7          link#15            UCS                   en0      !\n100.64/10          link#23            UCS                 utun2\n'
  const text = machineWith(['netstat', '-rn', '-f', 'inet'], table)
  assert.match(text, /^192\.168\.\d+\.0\/24 +link#15/m)
  assert.ok(!/192\.168\.7\b/.test(text))
  assert.match(text, /^100\.64\.\d+\.0\/10 +link#23/m)
})

test('findLeaks() sees whole words alone', () => {
  assert.deepEqual(findLeaks('the bobsled of name-1', new Set(['bobs', 'name-2'])), [])
  assert.deepEqual(findLeaks('the sled of bobs', new Set(['bobs'])), ['bobs'])
})
