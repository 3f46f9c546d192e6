// bushel bench serve: Bushel on one machine beside raw mlx-lm and mlx_lm.server, in one run, by turns.
//
// Every figure is a ratio or a difference of two things measured within seconds of each other, because
// computers are noisy and their speed changes by the minute. All pairs are printed.
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type TestDaemon, freePort, startDaemon } from '../test/e2e/daemon.ts'
import { Baseline } from './lib/baseline.ts'
import { timedAsk } from './lib/client.ts'
import { programDir, pythonEnv, pythonPath, starterDir } from './lib/paths.ts'
import { type Verdict, decodeRate, median, shown, verdict, verdictTable } from './lib/stats.ts'

const { values: flags } = parseArgs({
  options: {
    pairs: { type: 'string', default: '7' },
    openai: { type: 'string' },
    model: { type: 'string' },
    only: { type: 'string', multiple: true },
    json: { type: 'boolean' },
  },
})
const pairs = Math.max(1, Number(flags.pairs))
const threads = availableParallelism()
const prompt = 'Tell me a long story about a fox who learns to sail.'
const tokens = 64
const streams = 8

const say = (text: string): void => console.error(text)

async function inTurns<T>(
  runs: number,
  first: () => Promise<T>,
  second: () => Promise<T>,
): Promise<[T, T][]> {
  const measured: [T, T][] = []
  for (let index = 0; index < runs; index++) {
    if (index % 2 === 0) {
      const a = await first()
      measured.push([a, await second()])
    } else {
      const b = await second()
      measured.push([await first(), b])
    }
  }
  return measured
}

async function decodeAlone(daemon: TestDaemon): Promise<Verdict[]> {
  say('decode alone, against raw mlx_lm.stream_generate …')
  const baseline = await Baseline.start(starterDir, threads)
  const ours = (): ReturnType<typeof timedAsk> =>
    timedAsk({
      url: daemon.url,
      model: 'SmolLM2-135M-Instruct',
      prompt,
      tokens,
      extra: { ignore_eos: true },
      // Raw mlx-lm reads the whole prompt each time; so must we.
      key: `bench-${(asked += 1)}`,
    })
  let asked = 0
  const raw = (): ReturnType<Baseline['stream']> => baseline.stream(prompt, tokens)
  await ours()
  await raw()
  const measured: { ratio: number; added: number }[] = []
  for (let index = 0; index < pairs; index++) {
    const [mine, theirs] =
      index % 2 === 0
        ? [await ours(), await raw()]
        : await raw().then(async (value) => [await ours(), value] as const)
    const ratio = decodeRate(mine.times) / decodeRate(theirs.times)
    const added = ((mine.times[0] ?? Number.NaN) - theirs.first) * 1000
    say(
      `  ${decodeRate(mine.times).toFixed(1)} against ${decodeRate(theirs.times).toFixed(1)} tok/s, first token ${added.toFixed(1)} ms later`,
    )
    measured.push({ ratio, added })
  }
  baseline.stop()
  const ratios = measured.map(({ ratio }) => ratio)
  const added = measured.map((pair) => pair.added)
  return [
    verdict('decode alone / raw mlx_lm.stream_generate', {
      value: median(ratios),
      atLeast: 0.97,
      all: ratios,
      unit: '×',
    }),
    verdict('time to first token added to raw mlx-lm', {
      value: median(added),
      atMost: 15,
      all: added,
      unit: 'ms',
    }),
  ]
}

/** Tokens a second over all streams, from the first request to the last token. */
async function rateOfMany(
  url: string,
  model: string,
  extra: Record<string, unknown>,
): Promise<number> {
  const started = performance.now()
  const answers = await Promise.all(
    Array.from({ length: streams }, (_, index) =>
      timedAsk({ url, model, prompt: `${prompt} Version ${index}.`, tokens, extra }),
    ),
  )
  const seconds = (performance.now() - started) / 1000
  return answers.reduce((sum, answer) => sum + answer.times.length, 0) / seconds
}

async function eightStreams(daemon: TestDaemon, folder: string): Promise<Verdict[]> {
  say(`${streams} streams at once, against mlx_lm.server …`)
  const float32 = join(folder, 'float32')
  writeFloat32(float32)
  const port = await freePort()
  const server = spawn(
    pythonPath,
    ['-m', 'mlx_lm.server', '--model', float32, '--port', String(port), '--log-level', 'ERROR'],
    { env: pythonEnv(threads), stdio: 'ignore' },
  )
  try {
    const url = `http://127.0.0.1:${port}`
    await answers(url, float32)
    const ours = (): Promise<number> => rateOfMany(daemon.url, 'SmolLM2-135M-Instruct', {})
    const theirs = (): Promise<number> => rateOfMany(url, float32, {})
    await ours()
    await theirs()
    const measured = await inTurns(pairs, ours, theirs)
    for (const [mine, other] of measured)
      say(`  ${mine.toFixed(1)} against ${other.toFixed(1)} tok/s`)
    const ratios = measured.map(([mine, other]) => mine / other)
    return [
      verdict(`${streams} streams at once / mlx_lm.server`, {
        value: median(ratios),
        atLeast: 1,
        all: ratios,
        unit: '×',
      }),
    ]
  } finally {
    server.kill('SIGKILL')
  }
}

/** mlx_lm.server computes in the type of the file, so it gets float32 as Bushel does. */
function writeFloat32(target: string): void {
  const script = `
import sys, shutil, pathlib, mlx.core as mx
source, target = map(pathlib.Path, sys.argv[1:])
shutil.copytree(source, target)
weights = {k: v.astype(mx.float32) for k, v in mx.load(str(source / "model.safetensors")).items()}
mx.save_safetensors(str(target / "model.safetensors"), weights, {"format": "mlx"})
config = target / "config.json"
config.write_text(config.read_text().replace("float16", "float32"))`
  execFileSync(pythonPath, ['-c', script, starterDir, target], { env: pythonEnv(threads) })
}

async function answers(url: string, model: string): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    const ok = await timedAsk({ url, model, prompt: 'hi', tokens: 1 }).then(
      () => true,
      () => false,
    )
    if (ok) return
    await new Promise((done) => setTimeout(done, 100))
  }
  throw new Error(`${url} does not answer`)
}

/** With a model that costs nothing, what is left is ours: worker, pipe, daemon, HTTP. */
async function overhead(folder: string): Promise<Verdict[]> {
  say('overhead with a tiny random model …')
  const tiny = join(folder, 'tiny')
  execFileSync(
    pythonPath,
    [
      '-c',
      `import pathlib, sys; from bench.random_model import write_random_model; write_random_model(pathlib.Path(sys.argv[1]))`,
      tiny,
    ],
    { env: pythonEnv(1), cwd: join(programDir, 'worker') },
  )
  const baseline = await Baseline.start(tiny, 1)
  const daemon = await startDaemon({ args: ['--model', tiny], env: { BUSHEL_RANK_THREADS: '1' } })
  try {
    const many = 16
    const steps = 400
    const wall = async (rows: number, tokens: number): Promise<number> => {
      const started = performance.now()
      await Promise.all(
        Array.from({ length: rows }, () =>
          timedAsk({
            url: daemon.url,
            model: 'tiny',
            prompt: 'Hello',
            tokens,
            extra: { ignore_eos: true },
          }),
        ),
      )
      return (performance.now() - started) / 1000
    }
    // Random tokens are often no whole character and show nothing: what more of them take is counted instead.
    const ours = async (rows: number): Promise<number> => {
      const short = await wall(rows, steps / 4)
      return ((await wall(rows, steps + steps / 4)) - short) / steps
    }
    await ours(many)
    const added: Record<number, number[]> = { 1: [], [many]: [] }
    for (let index = 0; index < pairs; index++) {
      for (const rows of [1, many]) {
        const mine = await ours(rows)
        const raw = await baseline.stepSeconds(rows, steps)
        added[rows]?.push((mine - raw) * 1000)
      }
    }
    const one = added[1] ?? []
    const all = added[many] ?? []
    const perRow = all.map((value, index) => ((value - (one[index] ?? 0)) / (many - 1)) * 1000)
    say(`  a step: ${shown(one)} ms; ${many} rows: ${shown(all)} ms`)
    return [
      verdict('added to a step by worker and gateway', {
        value: median(one),
        atMost: 0.5,
        all: one,
        unit: 'ms',
      }),
      verdict('added to a step by each further row', {
        value: median(perRow),
        atMost: 50,
        all: perRow,
        unit: 'µs',
      }),
    ]
  } finally {
    baseline.stop()
    await daemon.stop()
  }
}

async function idle(daemon: TestDaemon): Promise<Verdict[]> {
  say('idle for 20 s …')
  const [daemonPid = 0, rankPid = 0] = daemon.processes()
  const before = [cpuMs(daemonPid), cpuMs(rankPid)]
  const windowMs = 20_000
  await new Promise((done) => setTimeout(done, windowMs))
  const share = (pid: number, index: number): number =>
    ((cpuMs(pid) - (before[index] ?? 0)) / windowMs) * 100
  const daemonShare = share(daemonPid, 0)
  const rankShare = share(rankPid, 1)
  const megabytes = residentBytes(daemonPid) / 1e6
  return [
    verdict('memory of the daemon without its rank', {
      value: megabytes,
      atMost: 150,
      all: [megabytes],
      unit: 'MB',
    }),
    verdict('idle CPU of the daemon', {
      value: daemonShare,
      atMost: 1,
      all: [daemonShare],
      unit: '%',
    }),
    verdict('idle CPU of the rank', { value: rankShare, atMost: 1, all: [rankShare], unit: '%' }),
  ]
}

function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
}

/** Any other server, measured in turns with ours. */
async function against(url: string, daemon: TestDaemon): Promise<Verdict[]> {
  const model =
    flags.model ??
    ((await (await fetch(new URL('/v1/models', url))).json()) as { data: { id: string }[] }).data[0]
      ?.id ??
    ''
  say(`against ${url} (${model}) …`)
  const ours = async (): Promise<number> =>
    decodeRate(
      (await timedAsk({ url: daemon.url, model: 'SmolLM2-135M-Instruct', prompt, tokens })).times,
    )
  const theirs = async (): Promise<number> =>
    decodeRate((await timedAsk({ url, model, prompt, tokens })).times)
  const alone = await inTurns(pairs, ours, theirs)
  const many = await inTurns(
    pairs,
    () => rateOfMany(daemon.url, 'SmolLM2-135M-Instruct', {}),
    () => rateOfMany(url, model, {}),
  )
  const ratio = (measured: [number, number][]): number[] =>
    measured.map(([mine, other]) => mine / other)
  return [
    verdict(`decode alone / ${url}`, {
      value: median(ratio(alone)),
      atLeast: 0,
      all: ratio(alone),
      unit: '×',
    }),
    verdict(`${streams} streams at once / ${url}`, {
      value: median(ratio(many)),
      atLeast: 0,
      all: ratio(many),
      unit: '×',
    }),
  ]
}

type Part = 'idle' | 'alone' | 'streams' | 'overhead'

async function main(): Promise<number> {
  const wanted = (part: Part): boolean => flags.only === undefined || flags.only.includes(part)
  const folder = mkdtempSync(join(tmpdir(), 'bushel-bench-'))
  const daemon = await startDaemon()
  const verdicts: Verdict[] = []
  try {
    if (wanted('idle')) verdicts.push(...(await idle(daemon)))
    if (wanted('alone')) verdicts.push(...(await decodeAlone(daemon)))
    if (wanted('streams')) verdicts.push(...(await eightStreams(daemon, folder)))
    if (flags.openai !== undefined) verdicts.push(...(await against(flags.openai, daemon)))
  } finally {
    await daemon.stop()
  }
  if (wanted('overhead')) verdicts.push(...(await overhead(folder)))
  rmSync(folder, { recursive: true, force: true })
  const out = join(programDir, 'bench', 'out')
  mkdirSync(out, { recursive: true })
  writeFileSync(
    join(out, 'serve.json'),
    `${JSON.stringify({ at: new Date().toISOString(), threads, pairs, verdicts }, null, 2)}\n`,
  )
  if (flags.json === true) console.log(JSON.stringify(verdicts, null, 2))
  else console.log(verdictTable(verdicts))
  return verdicts.every(({ ok }) => ok) ? 0 : 1
}

process.exit(await main())
