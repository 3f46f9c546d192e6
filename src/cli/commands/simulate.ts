// bushel simulate: clusters that live through faults in virtual time, and what they promised all the while.
import type { Command } from 'commander'
import { huntPlanted } from '../../simulator/hunt.ts'
import { runSeeds } from '../../simulator/pool.ts'
import { type RunOptions, type SeedResult, runSeed } from '../../simulator/run-seed.ts'
import { runSoak } from '../../simulator/soak.ts'
import { summarise } from '../../simulator/summary.ts'
import { type CliContext, UserError, exitCodes } from '../command.ts'
import { type SimulateOptions, plantedBug, wholeNumber } from '../simulate/options.ts'
import {
  renderCatches,
  renderCatchesMarkdown,
  renderSummary,
  soakCells,
  soakHeader,
} from '../simulate/render.ts'
import { table } from '../table.ts'

const seedsUsual = 200
const huntSeedsUsual = 60
const noteEvery = 50

const seedMax = 2 ** 31 - 1

export function register(command: Command, context: CliContext): void {
  command
    .option('--seeds <n>', `how many seeds (${seedsUsual})`, wholeNumber(1, 1_000_000))
    .option('--from <seed>', 'the first of them (1)', wholeNumber(0, seedMax))
    .option('--seed <seed>', 'this one alone', wholeNumber(0, seedMax))
    .option('--trace', 'with --seed: print everything that happens')
    .option('--machines <n>', 'so many machines instead of 1 to 16', wholeNumber(1, 64))
    .option('--minutes <n>', 'so many virtual minutes instead of 5 to 6', wholeNumber(5, 100_000))
    .option('--threads <n>', 'threads to use (all cores)', wholeNumber(1, 256))
    .option('--twice', 'run every seed twice and compare the traces')
    .option('--plant <bug>', 'with this bug in place', plantedBug)
    .option('--planted', 'plant every bug in turn and say which seed catches it')
    .option('--first', 'with --planted: stop at the first seed that catches a bug')
    .option('--markdown', 'with --planted: the table as in the docs')
    .option('--soak <hours>', 'one cluster of 16 machines for so many hours', wholeNumber(1, 1000))
    .addHelpText(
      'after',
      '\nExamples:\n  bushel simulate --seeds 1000\n  bushel simulate --seed 17 --trace\n  bushel simulate --planted',
    )
    .action(async (options: SimulateOptions) => {
      const broken = await chosen(options)(options, context)
      if (broken) process.exitCode = exitCodes.failed
    })
}

/** Each way of simulating says whether something broke. */
type Way = (options: SimulateOptions, context: CliContext) => Promise<boolean>

function chosen(options: SimulateOptions): Way {
  if (options.trace === true && options.seed === undefined)
    throw new UserError('--trace tells of one seed; name it with --seed', {
      exitCode: exitCodes.usage,
    })
  if (options.planted === true) return plantAll
  if (options.soak !== undefined) return soak
  return simulate
}

const simulate: Way = async (options, { out }) => {
  const run = runOptions(options)
  const startedMs = performance.now()
  const results = options.trace === true ? [traced(options, out)] : await seeds(options, out)
  const summary = summarise(results, run)
  const different = options.twice === true ? await compare(options, results, out) : []
  if (options.json === true) out.json({ ...summary, different })
  else out.result(renderSummary(summary, (performance.now() - startedMs) / 1000))
  if (options.twice === true && options.json !== true)
    out.result(
      different.length === 0
        ? 'Run twice, every seed gave the same trace.'
        : `Not the same when run again: seeds ${different.join(', ')}`,
    )
  return summary.violations.length > 0 || different.length > 0
}

function runOptions({ machines, minutes, plant }: SimulateOptions): Omit<RunOptions, 'print'> {
  return {
    ...(machines === undefined ? {} : { machines }),
    ...(minutes === undefined ? {} : { minutes }),
    ...(plant === undefined ? {} : { plant }),
  }
}

function traced(options: SimulateOptions, out: CliContext['out']): SeedResult {
  // One document on stdout stays one document.
  const print = (line: string): void => (options.json === true ? out.note(line) : out.result(line))
  return runSeed(options.seed ?? 0, { ...runOptions(options), print })
}

function seeds(options: SimulateOptions, out: CliContext['out']): Promise<readonly SeedResult[]> {
  const count = options.seed === undefined ? (options.seeds ?? seedsUsual) : 1
  return runSeeds({
    from: options.seed ?? options.from ?? 1,
    count,
    options: runOptions(options),
    ...(options.threads === undefined ? {} : { threads: options.threads }),
    onResult: ({ seed, violations: [first] }, done) => {
      if (first !== undefined) out.note(`seed ${seed}: ${first.invariant} broken: ${first.text}`)
      else if (done % noteEvery === 0) out.note(`${done} of ${count} seeds`)
    },
  })
}

/** The second run is made in this thread alone: neither threads nor what ran before may matter. */
async function compare(
  options: SimulateOptions,
  results: readonly SeedResult[],
  out: CliContext['out'],
): Promise<readonly number[]> {
  out.note('once more, in one thread')
  const again = await runSeeds({
    from: results[0]?.seed ?? 1,
    count: results.length,
    options: runOptions(options),
    threads: 1,
  })
  return results.filter(({ hash }, index) => hash !== again[index]?.hash).map(({ seed }) => seed)
}

const plantAll: Way = async (options, { out }) => {
  const catches = await huntPlanted({
    ...(options.plant === undefined ? {} : { bugs: [options.plant] }),
    ...(options.threads === undefined ? {} : { threads: options.threads }),
    ...(options.from === undefined ? {} : { from: options.from }),
    seedsMax: options.seeds ?? huntSeedsUsual,
    stopsAtFirst: options.first === true,
    onCatch: ({ bug, invariant, seed, text }) =>
      out.note(
        seed === null ? `${bug}: not caught` : `${bug}: seed ${seed}: ${invariant}: ${text}`,
      ),
  })
  if (options.json === true) out.json(catches)
  else if (options.markdown === true) out.result(renderCatchesMarkdown(catches))
  else out.result(renderCatches(catches))
  return catches.some(({ seed, isCleanWithout }) => seed === null || !isCleanWithout)
}

const soakMachines = 16

const soak: Way = (options, { out }) => {
  const { hours, result, growth } = runSoak({
    seed: options.seed ?? 1,
    hours: options.soak ?? 24,
    machines: options.machines ?? soakMachines,
    onHour: (hour) => out.note(`hour ${hour.hour}: journal ${hour.journalBytes} bytes`),
  })
  const { virtualMs: _, ...rest } = result
  if (options.json === true) out.json({ hours, growth, ...rest })
  else {
    const faults = Object.values(result.faults).reduce((sum, count) => sum + count, 0)
    const broken = result.violations.map(({ invariant, text }) => `${invariant} broken: ${text}`)
    out.result(table(soakHeader, hours.map(soakCells)))
    out.result(`\n${faults} faults, ${result.events} events, trace ${result.hash}`)
    out.result([...growth, ...broken].join('\n') || 'Nothing grew, everything held.')
  }
  return Promise.resolve(growth.length > 0 || result.violations.length > 0)
}
