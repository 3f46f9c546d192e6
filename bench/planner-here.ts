// bushel bench planner-here: probes this machine, predicts the starter model's decode speed, alone and as a
// pipeline over two ranks, and then measures both, in alternating pairs. Only synthetic models are probed.
//
// Two ranks on one computer share its memory and caches; a load average above one per core spoils both sides.
import { execFile, spawn } from 'node:child_process'
import { cpus, loadavg } from 'node:os'
import { createInterface } from 'node:readline'
import { parseArgs, promisify } from 'node:util'
import { type ProbeProgram, runProbe } from '../src/adapters/probe-process.ts'
import { asHeld } from '../src/cli/plan/held.ts'
import { machineId } from '../src/core/ids.ts'
import { linkFigures } from '../src/core/plan/cost/links.ts'
import { placeModel } from '../src/core/plan/place-model.ts'
import { measureHop, measureMachine } from '../src/core/plan/probe/measured.ts'
import type { PlanMachine, RankedPlan } from '../src/core/plan/types.ts'
import { findModel } from '../src/models/catalogue.ts'
import { loadPlanTables } from '../src/models/plan-tables.ts'
import { hopTimings, machineTimings } from '../src/wire/plan-data.ts'
import type { ProbeJob } from '../src/wire/probe-job.ts'
import { programDir, pythonEnv, pythonPath, starterDir } from './lib/paths.ts'
import { median, shown } from './lib/stats.ts'

const { values: flags } = parseArgs({
  options: {
    pairs: { type: 'string', default: '5' },
    tokens: { type: 'string', default: '40' },
  },
})

const env = pythonEnv(1) as Record<string, string>
const program: ProbeProgram = { python: pythonPath, workerDir: `${programDir}/worker`, env }
const host = '127.0.0.1'
const versions = { os: 'here', mlx: 'here', worker: 'here' }

async function only(job: ProbeJob): Promise<unknown> {
  let last = ''
  for await (const line of runProbe(program, job)) last = line
  return JSON.parse(last)
}

async function probeMachine(when: string): Promise<Required<PlanMachine['measurement']>> {
  const timings = machineTimings.parse(await only({ kind: 'machine' }))
  const outcome = measureMachine({ ...timings, machine: machineId('one'), versions, atMs: 0 })
  if (outcome.kind === 'unusable') throw new Error(`the probe is unusable: ${outcome.why}`)
  const { value, spread } = outcome.measured
  console.log(
    `${when.padEnd(9)} ${(value.memoryBytesPerSecond / 1e9).toFixed(1)} GB/s, ${(value.kernelSeconds * 1e6).toFixed(0)} µs per kernel, ${(value.matmulFlops / 1e9).toFixed(0)} GFLOPS, spread ±${(spread * 100).toFixed(0)}%`,
  )
  return value
}

async function probeHop(): Promise<number> {
  const serving = runProbe(program, { kind: 'hop-serve', host })
  const first = await serving.next()
  const { port, secret } = JSON.parse(String(first.value)) as { port: number; secret: string }
  const timings = hopTimings.parse(await only({ kind: 'hop-dial', host, port, secret }))
  await serving.return(undefined)
  const outcome = measureHop({
    source: machineId('one'),
    target: machineId('two'),
    versions,
    cables: host,
    atMs: 0,
    ...timings,
  })
  if (outcome.kind === 'unusable') throw new Error(outcome.why)
  const { hopSeconds } = outcome.measured.value
  console.log(`hop       ${(hopSeconds * 1e6).toFixed(0)} µs`)
  return hopSeconds
}

const promptTokens = 40

function predict(
  measurement: PlanMachine['measurement'],
  hopSeconds: number,
): { single: RankedPlan; pipeline: RankedPlan } {
  const tables = loadPlanTables(programDir)
  const found = findModel(starterDir, tables)
  if (found.kind === 'unknown') throw new Error(found.message)
  const machines = ['one', 'two'].map((name): PlanMachine => ({
    id: machineId(name),
    name,
    chip: null,
    measurement,
    memoryFreeBytes: 4e9,
    role: 'always-on',
    onBattery: false,
    inJacclWorld: false,
    running: [],
    diskBytesPerSecond: null,
  }))
  const entry = tables.links.find((link) => link.class === 'ethernet')
  if (entry === undefined) throw new Error('the table of links has no Ethernet')
  const outcome = placeModel({
    machines,
    links: [
      {
        source: machineId('one'),
        target: machineId('two'),
        figures: linkFigures(entry, { hopSeconds }),
      },
    ],
    worlds: [],
    model: asHeld(found.model, true),
    contextTokens: promptTokens + Number(flags.tokens),
    promptTokens,
    concurrency: 1,
    policy: { goal: 'fastest', pin: [], avoid: [], keepFree: [] },
    abilities: tables.abilities,
    regime: null,
    prices: null,
  })
  if (outcome.kind !== 'planned') throw new Error('no plan was found')
  const plan = (strategy: string): RankedPlan => {
    const one = outcome.plans.find(({ placement }) => placement.strategy === strategy)
    if (one === undefined) throw new Error(`no ${strategy} was planned`)
    return one
  }
  return { single: plan('single'), pipeline: plan('pipeline') }
}

interface Rates {
  readonly single: number
  readonly pipeline: number
  readonly load: number
}

async function measure(cut: number): Promise<readonly Rates[]> {
  const words = ['-W', 'ignore', '-m', 'bench.rates', starterDir, String(cut)]
  const child = spawn(pythonPath, [...words, flags.pairs, flags.tokens], {
    cwd: programDir,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const rates: Rates[] = []
  for await (const line of createInterface({ input: child.stdout }))
    rates.push(JSON.parse(line) as Rates)
  if (rates.length !== Number(flags.pairs))
    throw new Error(`${rates.length} of ${flags.pairs} pairs were measured; see above why`)
  return rates
}

/** Where the planner thinks the time of one token goes: what a miss is looked for in. */
function parts({ figures }: RankedPlan): string {
  return Object.entries(figures.decodeTerms)
    .filter(([, seconds]) => seconds > 0)
    .map(([name, seconds]) => `${name} ${(seconds * 1e3).toFixed(2)}`)
    .join(', ')
}

const measurement = await probeMachine('before')
const hopSeconds = await probeHop()
const plans = predict(measurement, hopSeconds)
const cut = plans.pipeline.placement.groups[0]?.stages[0]?.layers.to ?? 15
const rates = await measure(cut)
// The machine itself may have become slower or quicker meanwhile: then that is what a miss shows.
const after = await probeMachine('after')
const drift = (after.memoryBytesPerSecond / measurement.memoryBytesPerSecond - 1) * 100
for (const kind of ['single', 'pipeline'] as const) {
  const { value, low, high } = plans[kind].figures.tokensPerSecondAlone
  const all = rates.map((one) => one[kind])
  const middle = median(all)
  const miss = (value / middle - 1) * 100
  console.log(`${kind.padEnd(9)} ms per token: ${parts(plans[kind])}`)
  console.log(
    `${kind.padEnd(9)} predicted ${value.toFixed(1)} (${low.toFixed(1)}–${high.toFixed(1)}) tok/s, measured ${middle.toFixed(1)} of ${shown(all, 1)}: ${miss >= 0 ? '+' : '−'}${Math.abs(miss).toFixed(0)}%`,
  )
}
const { stdout } = await promisify(execFile)('uname', ['-sm'])
console.log(
  `memory moved ${drift >= 0 ? '+' : '−'}${Math.abs(drift).toFixed(0)}% between the probes; cut at layer ${cut}; ${stdout.trim()}, ${cpus().length} cores, load average ${shown([...rates.map((one) => one.load), loadavg()[0] ?? 0], 1)}`,
)
