import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Command } from 'commander'
import { request } from '../../../test/planner-requests.ts'
import { programDir } from '../../../test/planner-rows.ts'
import { type CliContext, UserError } from '../command.ts'
import { createPlanCommand, register as registerPlan } from '../commands/plan.ts'
import { register as registerPredict } from '../commands/predict.ts'

let home = ''
before(() => {
  home = mkdtempSync(join(tmpdir(), 'bushel-plan-'))
})
after(() => {
  rmSync(home, { recursive: true })
})

interface Spoken {
  readonly text: string
  readonly notes: string
  readonly json: unknown
  readonly error: UserError | null
}

async function run(
  words: readonly string[],
  register: (command: Command, context: CliContext) => void = registerPlan,
): Promise<Spoken> {
  const results: string[] = []
  const notes: string[] = []
  let json: unknown = null
  const command = new Command('test').option('--json').exitOverride()
  register(command, {
    env: { BUSHEL_HOME: home },
    programDir,
    out: {
      result: (text) => void results.push(text),
      note: (text) => void notes.push(text),
      json: (value) => (json = value),
      isTty: false,
    },
  })
  try {
    await command.parseAsync(words, { from: 'user' })
    return { text: results.join('\n'), notes: notes.join('\n'), json, error: null }
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return { text: results.join('\n'), notes: notes.join('\n'), json, error }
  } finally {
    process.exitCode = undefined
  }
}

test('bushel plan finds a model that only lies on this disk', async () => {
  const { machines, links } = request('llama-3.1-8b', '2xM3Ultra-96,tb5-mesh')
  const folder = mkdtempSync(join(home, 'mine-'))
  writeFileSync(
    join(folder, 'config.json'),
    JSON.stringify({
      model_type: 'llama',
      hidden_size: 2048,
      num_hidden_layers: 16,
      intermediate_size: 8192,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      vocab_size: 128_256,
      max_position_embeddings: 131_072,
      tie_word_embeddings: true,
      torch_dtype: 'bfloat16',
    }),
  )
  const folders = new Map([['my-own', folder]])
  const plan = createPlanCommand(() =>
    Promise.resolve({ machines, links, worlds: [], stale: [], inFloat32: false, folders }),
  )
  const register: typeof registerPlan = (command, context) => plan.register(command, context)
  const { text, error } = await run(['My-Own'], register)
  if (error !== null) assert.fail(error.message)
  assert.match(text, /Chosen: /)
  const other = await run(['Not-Mine'], register)
  assert.match(other.error?.message ?? '', /is not in the catalogue/)
})

test('bushel plan shows a table, a drawing and an explanation', async () => {
  const { text } = await run(['deepseek-v3', '--cluster', '2xM3Ultra-256,tb5-mesh'])
  assert.match(text, /plan +machines +first token +tok\/s +range/)
  assert.match(text, /Chosen: expert on 2/)
  assert.match(text, /─ m3ultra-1 +█+.*layers 0–60, 50% of each/)
  assert.match(text, /experts shared over JACCL/)
  assert.match(text, /pipeline +1\+1/)
  assert.match(text, /best for this goal/)
  assert.match(text, /rests on: chip table/)
  assert.match(text, /without m3ultra-2: the machines left cannot hold the model/)
})

test('bushel plan --json prints the whole outcome', async () => {
  const { json } = await run(['llama-3.1-8b', '--cluster', 'M4Pro-64', '--json'])
  const outcome = json as {
    kind: string
    chosen: { placement: { groups: { stages: { layers: { to: number } }[] }[] } }
  }
  assert.equal(outcome.kind, 'planned')
  assert.equal(outcome.chosen.placement.groups[0]?.stages[0]?.layers.to, 32)
})

test('bushel plan without a daemon says so, and how to go on', async () => {
  const { error } = await run(['llama-3.1-8b'])
  assert.match(
    error?.message ?? '',
    /no Bushel daemon runs here.*bushel up.*--cluster 4xM3Ultra-512,tb5-mesh/,
  )
  assert.equal(error?.exitCode, 3)
})

test('bushel plan takes the cluster at hand when it is given one', async () => {
  const { machines, links } = request('llama-3.1-8b', '2xM4Pro-64,tb5-mesh')
  const command = createPlanCommand(() =>
    Promise.resolve({ machines, links, worlds: [], stale: [], inFloat32: false }),
  )
  const { text } = await run(['llama-3.1-8b'], (target, context) =>
    command.register(target, context),
  )
  assert.match(text, /Chosen: single/)
})

test('bushel plan says that a link was measured, and what it was said to carry', async () => {
  const asked = request('llama-3.3-70b', '2xM4Pro-48,10gbe')
  const links = asked.links.map((link) => ({
    ...link,
    figures: {
      ...link.figures,
      bytesPerSecond: 6.2e6,
      measured: { nominalBytesPerSecond: 1.25e9, ageMs: 125_000 },
    },
  }))
  const command = createPlanCommand(() =>
    Promise.resolve({ ...asked, links, stale: [], inFloat32: false }),
  )
  const { text } = await run(['llama-3.3-70b'], (target, context) =>
    command.register(target, context),
  )
  assert.match(text, /│ ethernet, 6\.2 MB\/s \(measured 2 min 5 s ago, 1\.3 GB\/s nominal\)/)
  assert.match(text, /rests on: partly measured here/)
})

test('bushel plan answers bad words with one clear sentence', async () => {
  const complaint = async (...words: string[]): Promise<string> =>
    (await run(words)).error?.message ?? 'planned'
  assert.match(
    await complaint('lama-3.1-8b', '--cluster', 'M4Pro-64'),
    /did you mean llama-3\.1-8b\?/,
  )
  assert.match(await complaint('llama-3.1-8b', '--cluster', 'M4Por-64'), /did you mean M4Pro\?/)
  assert.match(
    await complaint('llama-3.1-8b', '--cluster', 'M4Pro-64', '--policy', 'fastets'),
    /did you mean fastest\?/,
  )
  assert.match(
    await complaint('llama-3.1-8b', '--cluster', 'M4Pro-64', '--context', '-5'),
    /--context is "-5"/,
  )
  assert.match(
    await complaint('llama-3.1-8b', '--cluster', 'M4Pro-64', '--context', '2000000'),
    /was made for at most 131072 tokens/,
  )
  assert.match(
    await complaint('llama-3.1-8b', '--cluster', 'M4Pro-64', '--pin', 'm4pr-1'),
    /did you mean m4pro-1\?/,
  )
  assert.match(await complaint('kimi-k2', '--cluster', 'M4Pro-64'), /are missing\nWhat would do:/)
  assert.match(await complaint(), /name a model/)
})

test('bushel plan --assume and --collectives plan for what may come', async () => {
  const { text } = await run([
    'deepseek-v3',
    '--cluster',
    '4xM3Ultra-512,tb5-mesh',
    '--assume',
    'tensor',
    '--collectives',
    'fast',
  ])
  assert.match(text, /Chosen: tensor on 4/)
  assert.match(text, /tensors shared over JACCL/)
})

test('bushel plan prices tokens by planner.toml, and complains about a broken one', async () => {
  const file = join(home, 'planner.toml')
  writeFileSync(
    file,
    'currency = "CHF"\nelectricity_per_kwh = 0.25\n[machine_prices]\n"M3Ultra-512" = 9500\n',
  )
  assert.match((await run(['llama-3.3-70b', '--cluster', 'M3Ultra-512'])).text, /CHF\/Mtok/)
  writeFileSync(file, 'electricity_per_kwh = "free"\n')
  assert.match(
    (await run(['llama-3.3-70b', '--cluster', 'M3Ultra-512'])).error?.message ?? '',
    /planner\.toml: electricity_per_kwh/,
  )
  rmSync(file)
})

test('bushel plan --score compares what was kept with what happened', async () => {
  assert.match((await run(['--score'])).error?.message ?? '', /no predictions are kept yet/)
  const range = { value: 20, low: 17, high: 24 }
  const lines = [
    JSON.stringify({
      kind: 'prediction',
      atMs: 1,
      group: 'g1',
      model: 'llama-3.3-70b',
      strategy: 'single',
      machines: 1,
      restsOn: 'chip table',
      tokensPerSecond: range,
      firstTokenSeconds: range,
    }),
    '{"kind":"prediction","atM',
    JSON.stringify({
      kind: 'measurement',
      atMs: 2,
      group: 'g1',
      tokensPerSecond: 19,
      firstTokenSeconds: 25,
      requests: 4,
    }),
  ]
  writeFileSync(join(home, 'predictions.jsonl'), lines.join('\n'))
  const { text } = await run(['--score'])
  assert.match(text, /g1 +llama-3\.3-70b +single +1 +20\.0 +19\.0 +\+5\.3% +inside/)
  assert.match(text, /median error 5\.3%, 100% inside their range/)
  assert.match(text, /first token: median error 20\.0%/)
  assert.match(text, /lines that could not be read: 2/)
})

test('bushel predict prints a JSON array in the order of the rows', async () => {
  const fixtures = join(programDir, 'test/fixtures/planner')
  const words = [
    '--rows',
    join(fixtures, 'rows.csv'),
    '--shapes',
    join(fixtures, 'model-shapes.csv'),
  ]
  const { json } = await run([...words, '--json'], registerPredict)
  const rows = json as { predicted_tok_s: number; low: number; high: number; model: string }[]
  assert.equal(rows.length, 43)
  assert.equal(rows[0]?.model, 'qwen32')
  for (const row of rows)
    assert.ok(row.low > 0 && row.low <= row.predicted_tok_s && row.predicted_tok_s <= row.high)
  const { text } = await run(words, registerPredict)
  assert.match(text, /decode: median error \d\.\d% over 33 rows/)
  assert.equal(
    text.split('\n').filter((line) => line.endsWith('%')).length,
    43,
    'every error is shown',
  )
})

test('bushel predict looks models that the shapes file leaves out up in the catalogue', async () => {
  const rows = join(home, 'rows.csv')
  const shapes = join(home, 'shapes.csv')
  writeFileSync(
    rows,
    'phase,model,bits_per_weight,hardware,nodes,strategy,collective_regime_or_transport,context\ndecode,dsv3,4.5,M3U,1,single,-,128\n',
  )
  writeFileSync(
    shapes,
    'model,layers,hidden,active_quantised_params_billion,active_16bit_params_billion,kv_bytes_per_token_fp16,kind,attention_width\nmine,32,4096,8,0,131072,dense,4096\n',
  )
  const { json } = await run(['--rows', rows, '--shapes', shapes, '--json'], registerPredict)
  const predicted = (json as { predicted_tok_s: number }[])[0]?.predicted_tok_s ?? 0
  assert.ok(Math.abs(predicted / 21.1 - 1) < 0.05)
})

test('bushel predict names the file and line it cannot read', async () => {
  const rows = join(home, 'rows.csv')
  writeFileSync(rows, 'phase,model\ndecode,qwen32\n')
  const shapes = join(programDir, 'test/fixtures/planner/model-shapes.csv')
  assert.match(
    (await run(['--rows', rows, '--shapes', shapes], registerPredict)).error?.message ?? '',
    /rows\.csv line 1: the column "bits_per_weight" is missing/,
  )
  assert.match(
    (await run(['--rows', join(home, 'none.csv'), '--shapes', shapes], registerPredict)).error
      ?.message ?? '',
    /none\.csv cannot be read/,
  )
})
