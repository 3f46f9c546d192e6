// The steps that one machine can do alone: the doctor, telemetry, and a ring of two ranks on itself.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createRunCommand } from '../../adapters/probers/access/real-access.ts'
import { textOf } from '../../adapters/probers/outcome.ts'
import { createLinuxTelemetry } from '../../adapters/telemetry/linux-telemetry.ts'
import { createMacTelemetry } from '../../adapters/telemetry/mac-telemetry.ts'
import { ringRankFile } from '../../core/backends/hostfile.ts'
import { ringEnvironment } from '../../core/backends/rank-environment.ts'
import { diagnose } from '../../core/doctor/run-doctor.ts'
import type { Telemetry } from '../../core/telemetry/telemetry.ts'
import { findThrottling } from '../../core/telemetry/throttling.ts'
import type { MeasuredRow } from '../../wire/selftest-bundle.ts'
import { runtimePython } from '../machines/local-prober.ts'
import { readSum, sumProgram } from './programs.ts'
import { type SelftestBench, type SelftestStep, skipped } from './step.ts'

/** MLX gives up connecting after half a minute; two local ranks take a second or two. */
const ringTimeoutMs = 40_000

const doctorStep: SelftestStep = {
  id: 'doctor',
  title: 'the doctor looks at this machine',
  run: async ({ facts }) => {
    const { counts } = diagnose({ machines: [facts], paths: [], links: [] })
    return {
      kind: 'ran',
      summary: `${counts.fail} wrong, ${counts.warn} to look at, ${counts.unknown} could not be checked, ${counts.pass} right`,
      tookMs: 0,
      measured: [],
    }
  },
}

const telemetryStep: SelftestStep = {
  id: 'telemetry',
  title: 'power, heat and load',
  run: async (bench) => {
    const began = bench.nowMs()
    const source = telemetrySource(bench)
    const sample = await source.sample()
    const rows = measuredOf(sample, bench.label)
    const throttled = findThrottling(sample, bench.nowMs()).map((one) => one.evidence)
    return {
      kind: 'ran',
      summary: `${rows.length} readings${throttled.length > 0 ? `; throttled: ${throttled.join(', ')}` : ''}`,
      tookMs: bench.nowMs() - began,
      measured: [...rows],
    }
  },
}

function telemetrySource(bench: SelftestBench) {
  const { access, nowMs, label } = bench
  return bench.facts.platform === 'macos'
    ? createMacTelemetry({
        machine: label,
        access,
        nowMs,
        isRoot: process.getuid?.() === 0,
        useMacmon: bench.useMacmon,
      })
    : createLinuxTelemetry({ machine: label, access, nowMs, wait: (ms) => sleep(ms) })
}

const units = {
  cpuWatts: 'W',
  gpuWatts: 'W',
  packageWatts: 'W',
  systemWatts: 'W',
  cpuCelsius: '°C',
  gpuCelsius: '°C',
  cpuLoad: 'ratio',
  gpuLoad: 'ratio',
  memoryUsedBytes: 'B',
} as const satisfies Partial<Record<keyof Telemetry, string>>

function measuredOf(sample: Telemetry, machine: string): readonly MeasuredRow[] {
  const keys = Object.keys(units) as (keyof typeof units)[]
  return keys.flatMap((key) => {
    const fact = sample[key]
    if (!fact.known) return []
    const { value, source } = fact.value
    return [{ what: key, value, unit: units[key], machine, detail: source }]
  })
}

const localRingStep: SelftestStep = {
  id: 'local-ring',
  title: 'two ranks on this machine add up',
  run: async (bench) => {
    const python = runtimePython(bench.context)
    if (python === null) return skipped('the Python runtime is not installed; run "bushel setup"')
    const folder = await mkdtemp(join(tmpdir(), 'bushel-ring-'))
    const began = bench.nowMs()
    try {
      const outputs = await runRing(bench, python, folder)
      const failure = outputs.find((one) => !one.known)
      const tookMs = bench.nowMs() - began
      if (failure !== undefined && !failure.known)
        return { kind: 'failed', reason: failure.why.detail, tookMs }
      const [first] = outputs
      return ringOutcome(first?.known === true ? first.value : '', bench.label, tookMs)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  },
}

async function runRing(bench: SelftestBench, python: string, folder: string) {
  const ports = await freePorts(2)
  const hosts = [{ ips: ['127.0.0.1'] }, { ips: ['127.0.0.1'] }]
  const addresses = ringRankFile(hosts, 0).map((list, rank) =>
    list.map((one) => one.replace(/:\d+$/, `:${ports[rank]}`)),
  )
  return Promise.all(
    [0, 1].map(async (rank) => {
      const environment = ringEnvironment({ rank, addresses })
      const env: Record<string, string | undefined> = { ...bench.context.env, ...environment.set }
      for (const name of environment.unset) delete env[name]
      for (const { variable, content } of environment.files) {
        const path = join(folder, `${variable}-${rank}.json`)
        await writeFile(path, content)
        env[variable] = path
      }
      const run = createRunCommand(env)
      return textOf(
        'the rank',
        await run([python, '-c', sumProgram('ring')], { timeoutMs: ringTimeoutMs }),
      )
    }),
  )
}

function ringOutcome(text: string, machine: string, tookMs: number) {
  const result = readSum(text)
  if (result === null)
    return { kind: 'failed' as const, reason: 'the first rank printed no sum', tookMs }
  if (!result.right) return { kind: 'failed' as const, reason: 'the sum was wrong', tookMs }
  const row = (what: string, value: number, unit: string): MeasuredRow => ({
    what,
    value,
    unit,
    machine,
    detail: 'two ranks, MLX ring on 127.0.0.1',
  })
  return {
    kind: 'ran' as const,
    summary: `formed in ${result.formed.toFixed(2)} s, a small sum takes ${Math.round(result.small * 1e6)} µs`,
    tookMs,
    measured: [
      row('ring-form', result.formed, 's'),
      row('all-sum-4B', result.small * 1e6, 'µs'),
      row('all-sum-16MiB', result.large * 1e3, 'ms'),
    ],
  }
}

async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  const ports = await Promise.all(
    servers.map(async (server) => {
      if (!server.listening) await new Promise((resolve) => server.once('listening', resolve))
      const address = server.address()
      return typeof address === 'object' && address !== null ? address.port : 0
    }),
  )
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

export const localSteps: readonly SelftestStep[] = [doctorStep, telemetryStep, localRingStep]
