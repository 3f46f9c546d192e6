// Host facts, power and the GPU's own entry: captures read by hand.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { captureFolder, toolCapture } from '../../../../test/support/captures.ts'
import {
  assertCutsClaimNothingNew,
  assertGarbageIsSurvived,
} from '../../../../test/support/claims.ts'
import { known } from '../../../core/machine-facts/fact.ts'
import * as host from './host.ts'
import { parseAccelerator, parseIoregEntry } from './ioreg.ts'
import { parsePowerSettings, parsePowerSource } from './power.ts'

const GiB = 1024 ** 3

test('parseSwVers() reads version and build', () => {
  const expected = [
    ['sw_vers.macos-26.4.1.txt', '26.4.1', '25E253'],
    ['sw_vers.macos-26.5.txt', '26.5', '25F71'],
    ['sw_vers.macos-26.6.2.txt', '26.6.2', '25G83'],
  ] as const
  for (const [name, version, build] of expected)
    assert.deepEqual(host.parseSwVers(toolCapture(name)), {
      name: known('macOS'),
      version: known(version),
      build: known(build),
    })
})

test('parseHardwarePage() reads chip, model and memory, and leaves the processor string alone', () => {
  const expected = [
    ['sp-hardware.macbookpro-m4max.macos15.json', 'Apple M4 Max', 'Mac16,5', 'MacBook Pro', 48],
    ['sp-hardware.macbookpro-m5max.macos26.json', 'Apple M5 Max', 'Mac17,6', 'MacBook Pro', 128],
    ['sp-hardware.macstudio-m2ultra.macos26.json', 'Apple M2 Ultra', 'Mac14,14', 'Mac Studio', 64],
    [
      'sp-hardware.virtual-machine.number-is-int.json',
      'Apple M4 Max (Virtual)',
      'VirtualMac2,1',
      'Apple Virtual Machine 1',
      4,
    ],
  ] as const
  for (const [name, chip, model, modelName, gib] of expected)
    assert.deepEqual(
      host.parseHardwarePage(toolCapture(name)),
      known({
        chip: known(chip),
        model: known(model),
        modelName: known(modelName),
        memoryBytes: known(gib * GiB),
      }),
    )
})

test('parseSysctl() reads labelled values', () => {
  const sysctl = host.parseSysctl(toolCapture('sysctl.labelled.macmini-m2pro.macos26.txt'))
  assert.deepEqual(host.sysctlText(sysctl, 'hw.model'), known('Mac14,12'))
  assert.deepEqual(host.sysctlNumber(sysctl, 'hw.memsize'), known(32 * GiB))
  assert.deepEqual(host.wiredLimit(sysctl), known({ kind: 'system-default' }))
  assert.equal(host.sysctlNumber(sysctl, 'hw.nperflevels').known, false)
})

test("cpuClusters() reads the kinds of core of an M5 Max in the system's own words", () => {
  const sysctl = host.parseSysctl(toolCapture('sysctl.perflevels.macbookpro-m5max.txt'))
  assert.deepEqual(
    host.cpuClusters(sysctl),
    known([
      { name: 'Super', cores: 6 },
      { name: 'Performance', cores: 12 },
    ]),
  )
})

test('parseSysctl() reads bare values only when there is one for each name', () => {
  const names = ['hw.memsize', 'kern.memorystatus_vm_pressure_level', 'net.inet.ip.portrange.first']
  const text = toolCapture(
    'sysctl-n.hw.memsize-vm_pressure_level-portrange.first.macbookpro-m4max-128.txt',
  )
  const sysctl = host.parseSysctl(text, names)
  assert.deepEqual(host.sysctlNumber(sysctl, 'hw.memsize'), known(128 * GiB))
  assert.deepEqual(host.memoryPressure(sysctl), known('normal'))
  const studio = toolCapture(
    'sysctl-n.hw.memsize-vm_pressure_level-portrange.first.macstudio-m3ultra-96.txt',
  )
  assert.deepEqual(
    host.sysctlNumber(host.parseSysctl(studio, names), 'hw.memsize'),
    known(96 * GiB),
  )
  assert.equal(host.parseSysctl(text, names.slice(1)).size, 0)
  const big = host.parseSysctl(
    toolCapture('sysctl-n.hw.memsize-brand_string.macstudio-m3ultra-512.txt'),
    ['hw.memsize', 'machdep.cpu.brand_string'],
  )
  assert.deepEqual(host.sysctlNumber(big, 'hw.memsize'), known(512 * GiB))
  assert.deepEqual(host.sysctlText(big, 'machdep.cpu.brand_string'), known('Apple M3 Ultra'))
})

test('wiredLimit() reads what sysctl prints after a change', () => {
  const sysctl = host.parseSysctl(toolCapture('sysctl-set.iogpu.wired_limit_mb.txt'))
  assert.deepEqual(host.wiredLimit(sysctl), known({ kind: 'set', bytes: 112 * GiB }))
})

test('parseVmStat() counts pages of the size that its header gives', () => {
  const text = readFileSync(captureFolder('matched-pair/macbook/vm_stat.txt'), 'utf8')
  const pages = 2_012_000 + 2_355_783 + 334_835
  assert.deepEqual(host.parseVmStat(text), known({ availableBytes: pages * 16_384 }))
  const small = text.replace('page size of 16384 bytes', 'page size of 4096 bytes')
  assert.deepEqual(host.parseVmStat(small), known({ availableBytes: pages * 4096 }))
})

test("parseFileVault() takes Apple's two sentences and no other", () => {
  assert.deepEqual(host.parseFileVault('FileVault is On.\n'), known('on'))
  assert.deepEqual(host.parseFileVault('FileVault is Off.\n'), known('off'))
  assert.equal(host.parseFileVault('FileVault ist aktiviert.\n').known, false)
})

test('parsePowerSettings() reads minutes until sleep, and never takes a missing line for zero', () => {
  const settings = parsePowerSettings(toolCapture('pmset-g.sleep-120.macmini.txt'))
  assert.deepEqual(settings.sleepMinutes, known(120))
  assert.deepEqual(settings.lowPowerMode, known(false))
  assert.equal(settings.restartAfterPowerLoss.known, false)
  assert.equal(parsePowerSettings('Currently in use:\n').sleepMinutes.known, false)
})

test('parsePowerSettings() reads who keeps the machine awake, and that sleep is disabled', () => {
  const held = parsePowerSettings(
    ' sleep                1 (sleep prevented by caffeinate, powerd)\n autorestart          1\n',
  )
  assert.deepEqual(held.sleepMinutes, known(1))
  assert.deepEqual(held.sleepHeldBy, known('caffeinate, powerd'))
  assert.deepEqual(held.restartAfterPowerLoss, known(true))
  const never = parsePowerSettings(
    'System-wide power settings:\n SleepDisabled\t\t1\nCurrently in use:\n sleep                10\n',
  )
  assert.deepEqual(never.sleepMinutes, known(0))
})

test('parsePowerSource() reads mains and battery', () => {
  assert.deepEqual(parsePowerSource("Now drawing from 'AC Power'\n"), known('mains'))
  assert.deepEqual(
    parsePowerSource("Now drawing from 'Battery Power'\n -InternalBattery-0\t80%\n"),
    known('battery'),
  )
  assert.equal(parsePowerSource('\n').known, false)
})

test('parseAccelerator() reads cores and load, and leaves unknown what the entry does not hold', () => {
  assert.deepEqual(
    parseAccelerator(toolCapture('ioreg-IOAccelerator.m1pro.excerpt.txt')),
    known({
      model: known('Apple M1 Pro'),
      cores: known(16),
      loadRatio: known(0.34),
      memoryInUseBytes: known(7_688_503_296),
    }),
  )
  const m3 = parseAccelerator(toolCapture('ioreg-IOAccelerator.m3pro.excerpt.txt'))
  assert.ok(m3.known && !m3.value.cores.known)
  assert.deepEqual(m3.value.loadRatio, known(0.16))
})

test('parseIoregEntry() reads an entry inside a drawn tree', () => {
  const values = parseIoregEntry(
    toolCapture('ioreg-IOPortTransportStateCIO.macstudio-m3ultra.tb5-disk.partial.txt'),
  )
  assert.equal(values.get('ParentBuiltInPortNumber'), '6')
  assert.equal(values.get('AsymmetricModeSupported'), 'Yes')
})

const bare = (text: string): unknown =>
  host.parseSysctl(text, [
    'hw.memsize',
    'kern.memorystatus_vm_pressure_level',
    'net.inet.ip.portrange.first',
  ])
const cases: readonly (readonly [string, (text: string) => unknown])[] = [
  ['tools/sw_vers.macos-26.4.1.txt', host.parseSwVers],
  ['tools/sw_vers.macos-26.5.txt', host.parseSwVers],
  ['tools/sw_vers.macos-26.6.2.txt', host.parseSwVers],
  ['tools/sp-hardware.macbookpro-m4max.macos15.json', host.parseHardwarePage],
  ['tools/sp-hardware.macbookpro-m5max.macos26.json', host.parseHardwarePage],
  ['tools/sp-hardware.macstudio-m2ultra.macos26.json', host.parseHardwarePage],
  ['tools/sp-hardware.virtual-machine.number-is-int.json', host.parseHardwarePage],
  ['tools/sysctl.labelled.macmini-m2pro.macos26.txt', (text) => host.parseSysctl(text)],
  ['tools/sysctl.perflevels.macbookpro-m5max.txt', (text) => host.parseSysctl(text)],
  ['tools/sysctl-n.hw.memsize-vm_pressure_level-portrange.first.macbookpro-m4max-128.txt', bare],
  ['matched-pair/macbook/vm_stat.txt', host.parseVmStat],
  ['matched-pair/studio/vm_stat.txt', host.parseVmStat],
  ['tools/pmset-g.sleep-120.macmini.txt', parsePowerSettings],
  ['tools/ioreg-IOAccelerator.m1pro.excerpt.txt', parseAccelerator],
  ['tools/ioreg-IOAccelerator.m3pro.excerpt.txt', parseAccelerator],
  ['tools/ioreg-IOPortTransportStateCIO.macstudio-m3ultra.tb5-disk.partial.txt', parseIoregEntry],
]
for (const [path, parse] of cases)
  test(`the parser of ${path} claims nothing new when it is cut short or damaged`, () => {
    const text = readFileSync(captureFolder(path), 'utf8')
    assertCutsClaimNothingNew(text, parse)
    assertGarbageIsSurvived(text, parse)
  })
