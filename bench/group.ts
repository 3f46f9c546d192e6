// bushel bench group: models over several ranks beside raw MLX cut the same way, in one run, by turns.
//
// The measuring itself is the worker's business (worker/bench): it must drive MLX directly to have something
// to compare with. Here it is run with the right environment, and its tables are put under one roof.
import { spawn } from 'node:child_process'
import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { programDir, pythonEnv, pythonPath, starterDir } from './lib/paths.ts'

const { values: flags } = parseArgs({
  options: {
    pairs: { type: 'string', default: '5' },
    tokens: { type: 'string', default: '60' },
    only: { type: 'string' },
  },
})

const benches = {
  pipeline: ['bench.group', starterDir, flags.pairs, flags.tokens],
  tensor: ['bench.world', 'tensor', flags.pairs, flags.tokens],
  expert: ['bench.world', 'expert', flags.pairs, flags.tokens],
  'tensor-pipeline': ['bench.world', 'tensor-pipeline', flags.pairs, flags.tokens],
} as const

function run(name: keyof typeof benches): Promise<number> {
  console.log(`── ${name} (load average ${loadavg()[0]?.toFixed(1) ?? '?'})`)
  const child = spawn(pythonPath, ['-W', 'ignore', '-m', ...benches[name]], {
    cwd: programDir,
    env: pythonEnv(1),
    stdio: 'inherit',
  })
  return new Promise((done) => child.on('close', (code) => done(code ?? 1)))
}

const names = Object.keys(benches) as (keyof typeof benches)[]
for (const name of names) {
  if (flags.only !== undefined && flags.only !== name) continue
  const code = await run(name)
  if (code !== 0) process.exitCode = code
}
