// bushel bench gaps: how long a reader waits when a rank is killed, beside what starting all over would have cost.
//
// Four hosts in network namespaces. First a spare group: two replicas, then a standby. Then a pipeline over three of
// a model that takes seconds to read a long prompt: its middle stage is killed, and the pause is held against loading
// everything and reading the prompt anew, both measured in the same round.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Asked, ask, longestPause } from '../test/e2e/client.ts'
import { Box, type Host, until } from '../test/e2e/hosts.ts'
import type { GenerationReport } from '../src/core/serving/report.ts'
import type { DeploymentView } from '../src/wire/cluster-view.ts'
import { enterBox } from './lib/in-box.ts'
import { programDir, pythonEnv, pythonPath } from './lib/paths.ts'
import { type Verdict, median, verdict, verdictTable } from './lib/stats.ts'

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    layers: { type: 'string', default: '12' },
    only: { type: 'string' },
  },
})

enterBox(import.meta.filename)

const rounds = Number(flags.rounds)
const starter = 'SmolLM2-135M-Instruct'
const say = (text: string): void => console.error(text)

async function readyGroups(
  gateway: Host,
  model: string,
): Promise<readonly DeploymentView['groups'][number][]> {
  const views = (await gateway.get('/cluster/deployments')) as DeploymentView[] | null
  const found = views?.find((view) => view.model === model)
  return found?.groups.filter((group) => group.status === 'ready') ?? []
}

async function loaded(gateway: Host, model: string, groups: number): Promise<number> {
  const isThere = async (): Promise<boolean> =>
    (await readyGroups(gateway, model)).length === groups
  return until(isThere, `${groups} ready group(s) of ${model}`, 180_000)
}

interface Pause {
  readonly seconds: number
  /** What it was made of, as "bushel explain" tells it. */
  readonly parts: string
}

/** How long the reader waits at most, when `kill` is called after some tokens. */
async function pauseOf(gateway: Host, asked: Asked, kill: () => Promise<void>): Promise<Pause> {
  let tokens = 0
  let killing = Promise.resolve()
  const answer = await ask(gateway, {
    ...asked,
    onText: () => {
      tokens += 1
      if (tokens === 5) killing = kill()
    },
  })
  await killing
  if (tokens <= 5) throw new Error('the answer was over before anything was killed')
  if (answer.error !== null) throw new Error(`an answer was lost: ${answer.error}`)
  return { seconds: longestPause(answer) / 1000, parts: await partsOf(gateway) }
}

async function partsOf(gateway: Host): Promise<string> {
  const reports = (await gateway.get('/cluster/generations')) as GenerationReport[] | null
  const gaps = reports?.[0]?.gaps ?? []
  const seconds = (ms: number): string => (ms / 1000).toFixed(2)
  const told = gaps.map(
    ({ noticedMs, waitedMs, reworkedMs }) =>
      `noticed after ${seconds(noticedMs)}, waited ${seconds(waitedMs)}, computed again ${seconds(reworkedMs)}`,
  )
  return told.length === 0 ? 'not noted' : told.join('; ')
}

/** Kills whichever group works: the one whose count of tokens grows. */
async function killServing(gateway: Host, model: string): Promise<void> {
  const tokens = async (): Promise<Map<number, number>> =>
    new Map(
      (await readyGroups(gateway, model))
        .flatMap((group) => group.stages.flatMap((stage) => stage.ranks))
        .map((rank) => [rank.pid ?? 0, rank.tokens]),
    )
  const before = await tokens()
  await until(
    async () => {
      for (const [pid, made] of await tokens())
        if (made > (before.get(pid) ?? 0)) {
          process.kill(pid, 'SIGKILL')
          return true
        }
      return false
    },
    'a group that writes',
    10_000,
  )
}

async function withSpare(gateway: Host, spare: 'replica' | 'standby'): Promise<Verdict> {
  say(`${starter} with a ${spare}, its rank killed …`)
  const how = spare === 'replica' ? ['--replicas', '2'] : ['--standby']
  await gateway.json('load', starter, '--strategy', 'single', ...how)
  const pauses: number[] = []
  for (let round = 0; round < rounds; round++) {
    await loaded(gateway, starter, 2)
    const prompt = `Story ${round}: tell me about a fox who learns to sail.`
    const asked = { model: starter, prompt, tokensMax: 60, temperature: 0 }
    const pause = await pauseOf(gateway, asked, () => killServing(gateway, starter))
    say(`  ${pause.seconds.toFixed(2)} s: ${pause.parts}`)
    pauses.push(pause.seconds)
  }
  await gateway.json('unload', starter)
  return verdict(`pause with a ${spare}, rank killed`, {
    value: median(pauses),
    atMost: 2,
    all: pauses,
    unit: 's',
  })
}

async function lostStage(gateway: Host, model: string): Promise<Verdict[]> {
  say(`pipeline of ${model} over three, its middle stage killed …`)
  const layers = Number(flags.layers)
  const share = [Math.ceil(layers / 3), Math.ceil((layers - Math.ceil(layers / 3)) / 2)]
  const cut = [...share, layers - share.reduce((sum, part) => sum + part, 0)].join(',')
  const load = ['load', model, '--strategy', 'pipeline', '--machines', 'a,b,c', '--layers', cut]
  const ratios: number[] = []
  const pauses: number[] = []
  const anews: number[] = []
  for (let round = -1; round < rounds; round++) {
    const started = performance.now()
    await gateway.json(...load)
    await loaded(gateway, model, 1)
    const loadSeconds = (performance.now() - started) / 1000
    const prompt = (mark: string): string => `${mark}${round} ${'all the apples fell. '.repeat(95)}`
    const asked = { model, temperature: 0, tokensMax: 80, ignoreEos: true }
    const whole = await ask(gateway, { ...asked, prompt: prompt('whole') })
    const readSeconds = (whole.arrivalsMs[0] ?? Number.NaN) / 1000
    const pause = await pauseOf(gateway, { ...asked, prompt: prompt('broken') }, async () => {
      const [group] = await readyGroups(gateway, model)
      process.kill(group?.stages[1]?.ranks[0]?.pid ?? 0, 'SIGKILL')
    })
    await loaded(gateway, model, 1)
    await gateway.json('unload', model)
    // The first round copies the files to the other hosts.
    if (round < 0) continue
    const anew = loadSeconds + readSeconds
    say(
      `  paused ${pause.seconds.toFixed(2)} s (${pause.parts}); loading all ${loadSeconds.toFixed(2)} s, reading ${whole.usage?.prompt_tokens ?? 0} tokens ${readSeconds.toFixed(2)} s`,
    )
    ratios.push(pause.seconds / anew)
    pauses.push(pause.seconds)
    anews.push(anew)
  }
  return [
    verdict('pause when one stage of three is lost', {
      value: median(pauses),
      atMost: Number.POSITIVE_INFINITY,
      all: pauses,
      unit: 's',
    }),
    verdict('… against loading and reading everything', {
      value: median(ratios),
      atMost: 0.7,
      all: ratios,
      unit: '×',
    }),
  ]
}

/**
 * A model of about 85 million random weights: large enough that reading 2,000 tokens takes seconds. It knows bytes
 * and nothing else, so that most of its tokens are seen.
 */
function writeLarge(folder: string): string {
  const target = join(folder, 'large')
  const script = `import pathlib, sys; from bench.random_model import write_random_model; write_random_model(pathlib.Path(sys.argv[1]), scale=2.0, vocab_size=257, hidden_size=768, num_hidden_layers=int(sys.argv[2]), intermediate_size=2048, num_attention_heads=12, num_key_value_heads=4)`
  execFileSync(pythonPath, ['-c', script, target, flags.layers], {
    env: pythonEnv(1),
    cwd: join(programDir, 'worker'),
  })
  return target
}

const folder = mkdtempSync(join(tmpdir(), 'bushel-gaps-'))
const verdicts: Verdict[] = []
const box = await Box.open(['a', 'b', 'c', 'd'])
try {
  const large = writeLarge(folder)
  const gateway = box.host('d')
  for (const name of ['a', 'b', 'c']) {
    const model = name === 'a' ? large : 'none'
    box.host(name).up('--model', model, '--memory', '4GB')
  }
  gateway.up('--model', 'none', '--role', 'client')
  await box.gather(gateway)
  const wanted = (part: string): boolean => flags.only === undefined || flags.only === part
  for (const spare of ['replica', 'standby'] as const)
    if (wanted(spare)) verdicts.push(await withSpare(gateway, spare))
  if (wanted('stage')) verdicts.push(...(await lostStage(gateway, 'large')))
} finally {
  await box.close()
  rmSync(folder, { recursive: true, force: true })
}
const out = join(programDir, 'bench', 'out')
mkdirSync(out, { recursive: true })
writeFileSync(join(out, 'gaps.json'), `${JSON.stringify(verdicts, null, 2)}\n`)
console.log(verdictTable(verdicts))
process.exitCode = verdicts.every(({ ok }) => ok) ? 0 : 1
