// Telemetry: captures read by hand, absent figures stay absent, old ones are known to be old.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toolCapture } from '../../../test/support/captures.ts'
import { type Fact, known } from '../../core/machine-facts/fact.ts'
import {
  type PartialTelemetry,
  type Reading,
  ageMs,
  combineTelemetry,
  isFresh,
} from '../../core/telemetry/telemetry.ts'
import { findThrottling } from '../../core/telemetry/throttling.ts'
import type { CommandOutcome, MachineAccess } from '../../ports/machine-access.ts'
import { captureName, emptyRecording, replay } from '../probers/access/recording.ts'
import { macCommands } from '../probers/mac/commands.ts'
import { createLinuxTelemetry, loadBetween, parseCpuTimes } from './linux-telemetry.ts'
import { createMacTelemetry } from './mac-telemetry.ts'
import { parseMacmon } from './macmon.ts'
import {
  gpuTelemetryFields,
  gpuTelemetryQuery,
  parseClockReasons,
  sampleGpus,
} from './nvidia-telemetry.ts'
import { parseThermalLimits } from './pmset-therm.ts'
import { parsePowermetricsPlist, parsePowermetricsText } from './powermetrics.ts'

const value = (fact: Fact<Reading<unknown>> | undefined): unknown =>
  fact?.known === true ? fact.value.value : undefined
const values = (sample: PartialTelemetry | undefined) =>
  Object.fromEntries(
    Object.entries(sample ?? {}).flatMap(([key, fact]) => {
      const one = value(fact as Fact<Reading<unknown>>)
      return one === undefined
        ? []
        : [[key, typeof one === 'number' ? Number(one.toFixed(5)) : one]]
    }),
  )

test('parsePowermetricsPlist() reads a whole sample of an M4 Max', () => {
  const [sample, ...others] = parsePowermetricsPlist(
    toolCapture('powermetrics.macbookpro-m4max.cpu-gpu-thermal.macos26.2.trimmed.plist'),
    1,
  )
  assert.equal(others.length, 0)
  assert.deepEqual(values(sample), {
    cpuWatts: 2.97845,
    gpuWatts: 0.26961,
    aneWatts: 0,
    packageWatts: 3.24807,
    gpuLoad: 0.12266,
    gpuMhz: 338,
    thermalPressure: 'nominal',
  })
  assert.ok(sample?.gpuLoad?.known)
  assert.equal(sample.gpuLoad.value.atMs, Date.parse('2026-01-22T21:07:07Z'))
})

test('parsePowermetricsPlist() separates samples at NUL and does not invent powers that were not asked for', () => {
  const samples = parsePowermetricsPlist(
    toolCapture('powermetrics.macbookpro-m4pro.gpu_power.five-samples-nul-separated.trimmed.plist'),
    1,
  )
  assert.equal(samples.length, 5)
  for (const sample of samples) {
    assert.equal(sample.cpuWatts?.known, false)
    assert.equal(sample.thermalPressure?.known, false)
  }
  assert.deepEqual(
    samples.map((sample) => value(sample.gpuMhz)),
    [426.525, 479.398, 867.616, 483.431, 458.421],
  )
  const [single] = parsePowermetricsPlist(
    toolCapture('powermetrics.macbookpro-m4pro.gpu_power.macos15.trimmed.plist'),
    1,
  )
  assert.deepEqual(values(single), { gpuLoad: 0.00468, gpuMhz: 338 })
})

test('parsePowermetricsPlist() reads a sample of thermal pressure alone, and refuses a word it does not know', () => {
  const text = toolCapture('powermetrics.macbookpro-m4max.thermal.trimmed.plist')
  assert.deepEqual(values(parsePowermetricsPlist(text, 5)[0]), { thermalPressure: 'nominal' })
  const future = parsePowermetricsPlist(text.replace('Nominal', 'Balmy'), 5)[0]?.thermalPressure
  assert.ok(future !== undefined && !future.known)
  assert.match(future.why.detail, /"Balmy" is new to Bushel/)
})

test('parsePowermetricsText() reads whole and excerpted captures', () => {
  const [m4] = parsePowermetricsText(toolCapture('powermetrics.m4-14core.cpu-gpu.macos26.txt'), 1)
  assert.deepEqual(values(m4), {
    cpuWatts: 0.041,
    gpuWatts: 0.002,
    aneWatts: 0,
    packageWatts: 0.043,
    gpuLoad: 0.0121,
    gpuMhz: 338,
  })
  assert.ok(m4?.cpuWatts?.known)
  assert.equal(m4.cpuWatts.value.atMs, Date.parse('2026-04-04T13:20:22-04:00'))
  const air = parsePowermetricsText(
    toolCapture('powermetrics.macbookair-m2.cpu-thermal.two-blocks.macos26.2.trimmed.txt'),
    1,
  )
  assert.deepEqual(air.map(values), [
    {
      cpuWatts: 0.823,
      gpuWatts: 0.026,
      aneWatts: 0.323,
      packageWatts: 1.172,
      thermalPressure: 'nominal',
    },
    {
      cpuWatts: 0.205,
      gpuWatts: 0.019,
      aneWatts: 0.221,
      packageWatts: 0.445,
      thermalPressure: 'nominal',
    },
  ])
  const [m5] = parsePowermetricsText(toolCapture('powermetrics.m5pro.cpu-gpu.excerpt.txt'), 1)
  assert.deepEqual(values(m5), {
    cpuWatts: 1.673,
    gpuWatts: 0.56,
    aneWatts: 0,
    packageWatts: 2.233,
    gpuLoad: 0.4013,
    gpuMhz: 338,
  })
  const [ultra] = parsePowermetricsText(
    toolCapture('powermetrics.macstudio-m3ultra.lines.excerpt.txt'),
    1,
  )
  assert.deepEqual(values(ultra), {
    cpuWatts: 8.916,
    gpuWatts: 9.462,
    aneWatts: 0,
    packageWatts: 18.378,
    gpuLoad: 1,
    gpuMhz: 1380,
  })
})

test('parseMacmon() reads the names of every version', () => {
  const [, second] = parseMacmon(toolCapture('macmon-pipe.pre-0.6.two-lines.jsonl'), 77)
  assert.equal(value(second?.systemWatts), 10.272432)
  assert.equal(value(second?.gpuMhz), 338)
  assert.equal(value(second?.gpuLoad), 0.01348789)
  assert.ok(
    second?.gpuLoad?.known && second.gpuLoad.value.atMs === 77,
    'without a timestamp the line is new',
  )
  const [middle] = parseMacmon(toolCapture('macmon-pipe.0.6-0.7.readme-example.jsonl'), 77)
  assert.equal(value(middle?.gpuLoad), 0.021497859)
  assert.ok(middle?.gpuLoad?.known)
  assert.equal(middle.gpuLoad.value.atMs, Date.parse('2025-02-24T20:38:15.427569+00:00'))
  const [latest] = parseMacmon(toolCapture('macmon-pipe.0.8.readme-example.jsonl'), 77)
  assert.equal(value(latest?.gpuLoad), 0.09)
  assert.equal(value(latest?.cpuLoad), 0.092)
  assert.equal(value(latest?.gpuMhz), 461)
  assert.equal(value(latest?.cpuCelsius), 43.73614)
  assert.equal(value(latest?.memoryUsedBytes), 20_985_479_168)
})

test('parseMacmon() takes a sensor at zero for one that cannot be read', () => {
  const [sample] = parseMacmon('{"temp":{"cpu_temp_avg":0.0,"gpu_temp_avg":40.5}}\n', 1)
  assert.equal(sample?.cpuCelsius?.known, false)
  assert.equal(value(sample?.gpuCelsius), 40.5)
})

test('parseThermalLimits() says nothing when pmset has recorded nothing', () => {
  assert.equal(
    parseThermalLimits(toolCapture('pmset-g-therm.apple-silicon.nominal.txt'), 1).speedLimitPercent
      ?.known,
    false,
  )
  assert.equal(
    value(
      parseThermalLimits(toolCapture('pmset-g-therm.with-cpu-power-notify.txt'), 1)
        .speedLimitPercent,
    ),
    100,
  )
  assert.equal(
    value(
      parseThermalLimits('\tCPU_Scheduler_Limit \t= 100\n\tCPU_Speed_Limit \t= 60\n', 1)
        .speedLimitPercent,
    ),
    60,
  )
})

test('findThrottling() flags heat and power, and lets old readings be', () => {
  const at = <T>(one: T, atMs: number) => known({ value: one, atMs, source: 'test' })
  const hot = combineTelemetry('mac', [
    { thermalPressure: at('heavy', 1000), speedLimitPercent: at(70, 1000) },
  ])
  assert.deepEqual(
    findThrottling(hot, 2000).map((one) => one.evidence),
    ['thermal pressure is heavy', 'the CPU is limited to 70% of its speed'],
  )
  assert.deepEqual(findThrottling(hot, 60_000), [])
  const cool = combineTelemetry('mac', [
    { thermalPressure: at('nominal', 1000), speedLimitPercent: at(100, 1000) },
  ])
  assert.deepEqual(findThrottling(cool, 2000), [])
  assert.deepEqual(findThrottling(combineTelemetry('mac', []), 0), [])
})

test('ageMs() and isFresh() tell a new reading from an old one', () => {
  const reading = { value: 1, atMs: 1000, source: 'x' }
  assert.equal(ageMs(reading, 3500), 2500)
  assert.equal(ageMs(reading, 500), 0)
  assert.ok(isFresh(reading, 11_000) && !isFresh(reading, 11_001))
})

test('combineTelemetry() takes each figure from the first source that knows it', () => {
  const at = (one: number, source: string) => known({ value: one, atMs: 1, source })
  const both = combineTelemetry('mac', [
    { gpuLoad: { known: false, why: { kind: 'needs-admin', detail: 'powermetrics needs root' } } },
    { gpuLoad: at(0.4, 'ioreg'), cpuWatts: at(3, 'macmon') },
  ])
  assert.deepEqual(both.gpuLoad, at(0.4, 'ioreg'))
  assert.equal(both.systemWatts.known, false)
})

function accessWith(outputs: Record<string, CommandOutcome>): MachineAccess {
  return {
    ...replay(emptyRecording()),
    runCommand: async (argv) => outputs[captureName(argv)] ?? { kind: 'missing' },
  }
}
const text = (stdout: string): CommandOutcome => ({
  kind: 'exited',
  exitCode: 0,
  stdout,
  stderr: '',
})

test('createMacTelemetry() gives GPU load and memory without rights, and says why power is missing', async () => {
  const access = accessWith({
    [captureName(macCommands.accelerator.argv)]: text(
      toolCapture('ioreg-IOAccelerator.m1pro.excerpt.txt'),
    ),
    [captureName(macCommands.sysctl.argv)]: text('hw.memsize: 137438953472\n'),
    vm_stat: text(
      'Mach Virtual Memory Statistics: (page size of 16384 bytes)\nPages free: 1000.\nPages inactive: 2000.\nPages speculative: 100.\n',
    ),
    'sudo_-n_powermetrics_-n_1_-i_500_-s_cpu_power,gpu_power,thermal_-f_plist': {
      kind: 'exited',
      exitCode: 1,
      stdout: '',
      stderr: 'sudo: a password is required\n',
    },
  })
  const sample = await createMacTelemetry({
    machine: 'mac',
    access,
    nowMs: () => 9,
    isRoot: false,
    useMacmon: false,
  }).sample()
  assert.equal(value(sample.gpuLoad), 0.34)
  assert.equal(value(sample.memoryUsedBytes), 137_438_953_472 - 3100 * 16_384)
  assert.ok(!sample.gpuWatts.known)
  assert.equal(sample.gpuWatts.why.kind, 'needs-admin')
  assert.equal(sample.cpuCelsius.known, false)
})

test('createMacTelemetry() runs macmon only when the owner asked for it', async () => {
  const asked: string[] = []
  const access = {
    runCommand: async (argv: readonly string[]): Promise<CommandOutcome> => {
      asked.push(argv[0] ?? '')
      return argv[0] === 'macmon'
        ? text(toolCapture('macmon-pipe.0.8.readme-example.jsonl'))
        : { kind: 'missing' }
    },
  }
  const components = { machine: 'mac', access, nowMs: () => 9, isRoot: true }
  await createMacTelemetry({ ...components, useMacmon: false }).sample()
  assert.ok(!asked.includes('macmon'))
  const sample = await createMacTelemetry({ ...components, useMacmon: true }).sample()
  assert.equal(value(sample.systemWatts), 5.876533)
})

test('sampleGpus() reads an H200 and its clock reasons', async () => {
  const access = accessWith({
    [captureName(gpuTelemetryQuery(gpuTelemetryFields))]: text(
      '0, NVIDIA H200, 0, 0, 143771, 36, 126.11, 700.00, 1980\n',
    ),
    'nvidia-smi_--query-gpu=index,clocks_throttle_reasons.active_--format=csv,noheader,nounits':
      text('0, 0x0000000000000001\n'),
    'nvidia-smi_--query-gpu=index,clocks_event_reasons.active_--format=csv,noheader,nounits': {
      kind: 'exited',
      exitCode: 2,
      stdout: toolCapture('nvidia-smi.unknown-field.h200.txt'),
      stderr: '',
    },
  })
  const [gpu] = await sampleGpus(access.runCommand, () => 4)
  assert.equal(value(gpu?.watts), 126.11)
  assert.equal(value(gpu?.celsius), 36)
  assert.equal(value(gpu?.memoryTotalBytes), 143_771 * 1024 ** 2)
  assert.deepEqual(value(gpu?.clockReasons), ['idle'])
  assert.deepEqual(
    await sampleGpus(
      async () => ({ kind: 'missing' }),
      () => 4,
    ),
    [],
  )
})

test("parseClockReasons() reads NVML's bits, and the captured ones", () => {
  const active = toolCapture('nvidia-smi-clock-event-reasons.h200.txt').split(', ')[1] ?? ''
  assert.deepEqual(parseClockReasons(active), known(['idle']))
  assert.deepEqual(
    parseClockReasons('0x0000000000000064'),
    known(['power-cap', 'software-thermal', 'hardware-thermal']),
  )
  assert.deepEqual(parseClockReasons('0x0000000000000200'), known(['other']))
  assert.equal(parseClockReasons('Active').known, false)
})

test('createLinuxTelemetry() takes the load of a short while just passed, and the hottest sensor of the processor', async () => {
  // A quarter busy for an hour, then wholly.
  let clockMs = 0
  const busyMs = (): number => Math.min(clockMs, 3_600_000) / 4 + Math.max(0, clockMs - 3_600_000)
  const files: Record<string, string> = {
    '/proc/meminfo': 'MemTotal:       1000 kB\nMemAvailable:   400 kB\n',
    '/sys/class/hwmon/hwmon0/name': 'nvme\n',
    '/sys/class/hwmon/hwmon0/temp1_input': '90000\n',
    '/sys/class/hwmon/hwmon1/name': 'coretemp\n',
    '/sys/class/hwmon/hwmon1/temp1_input': '51000\n',
    '/sys/class/hwmon/hwmon1/temp2_input': '63500\n',
  }
  const folders: Record<string, string[]> = {
    '/sys/class/hwmon': ['hwmon0', 'hwmon1'],
    '/sys/class/hwmon/hwmon1': ['temp1_input', 'temp2_input', 'temp2_label'],
  }
  const source = createLinuxTelemetry({
    machine: 'box',
    nowMs: () => clockMs,
    wait: async (ms) => void (clockMs += ms),
    access: {
      runCommand: async () => ({ kind: 'missing' }),
      listFolder: async (path) => folders[path] ?? null,
      readText: async (path) => {
        if (path === '/proc/stat') {
          const idleMs = clockMs - busyMs()
          return { kind: 'text', text: `cpu  ${busyMs()} 0 0 ${idleMs} 0 0 0 0 0 0\ncpu0 1 2 3\n` }
        }
        const content = files[path]
        return content === undefined ? { kind: 'missing' } : { kind: 'text', text: content }
      },
    },
  })
  const first = await source.sample()
  assert.equal(value(first.cpuLoad), 0.25)
  assert.equal(clockMs, 400)
  assert.equal(value(first.cpuCelsius), 63.5)
  assert.equal(value(first.memoryUsedBytes), 600 * 1024)
  clockMs = 3_600_000
  const [second, again] = await Promise.all([source.sample(), source.sample()])
  assert.equal(value(second.cpuLoad), 1)
  assert.equal(again, second)
  clockMs += 1000
  await source.sample()
  assert.equal(clockMs, 3_601_400, 'a window that is open long enough needs no wait')
  assert.deepEqual(second.gpus, [])
})

test('parseCpuTimes() and loadBetween() refuse nonsense', () => {
  assert.equal(parseCpuTimes('intr 1 2 3\n').known, false)
  assert.equal(loadBetween({ busy: 5, total: 10 }, { busy: 4, total: 9 }).known, false)
})
