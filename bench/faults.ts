// bushel bench faults: what readers see when things are killed, stopped and cut, as a table.
//
// Four hosts in network namespaces, a client that holds nothing, sixteen readers. The same killing is then done
// to mlx_lm.server, whose client sees its stream break. --url puts any other server beside it: it is asked, and
// the command given with --kill is run in the middle of its answer.
import { spawn, spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { Chaos, chaosQuestions, describeChaos, faultKinds } from '../test/e2e/chaos.ts'
import { askUrl } from '../test/e2e/client.ts'
import { freePort } from '../test/e2e/daemon.ts'
import { Box, addScriptedModel, until } from '../test/e2e/hosts.ts'
import { enterBox } from './lib/in-box.ts'
import { pythonEnv, pythonPath, starterDir } from './lib/paths.ts'

const { values: flags } = parseArgs({
  options: {
    faults: { type: 'string', default: '100' },
    clients: { type: 'string', default: '16' },
    seed: { type: 'string', default: '7' },
    url: { type: 'string' },
    model: { type: 'string', default: 'default_model' },
    kill: { type: 'string' },
  },
})

enterBox(import.meta.filename)

const model = 'script'
async function bushelUnderFaults(): Promise<void> {
  const box = await Box.open(['a', 'b', 'c', 'd'])
  try {
    const gateway = box.host('d')
    const victims = ['a', 'b', 'c'].map((name) => box.host(name))
    for (const host of victims) {
      addScriptedModel(host, model, { tokensPerSecond: 40 })
      host.up('--model', 'none', '--memory', '4GB')
    }
    gateway.up('--model', 'none', '--role', 'client')
    await box.gather(gateway)
    for (const [name, load] of [
      ['one machine serves', ['--strategy', 'single']],
      ['two replicas', ['--strategy', 'single', '--replicas', '2']],
      ['a pipeline over three', ['--strategy', 'pipeline']],
    ] as const) {
      await gateway.json('load', model, ...load)
      const seed = Number(flags.seed)
      const chaos = new Chaos({ box, model, gateway, victims, questions: chaosQuestions, seed })
      await chaos.learn()
      const faults = Math.round(Number(flags.faults) / 3)
      await chaos.run({ clients: Number(flags.clients), faults, kinds: faultKinds })
      console.log(`${name}\n${describeChaos(chaos.report)}`)
      for (const lost of [...chaos.report.lost, ...chaos.report.wrong].slice(0, 5))
        console.log(`    ${lost}`)
    }
  } finally {
    await box.close()
  }
}

/** What the client of a server sees when the server's process is killed in the middle of its answer. */
async function othersUnderFaults(): Promise<void> {
  const port = await freePort()
  const server = spawn(
    pythonPath,
    ['-W', 'ignore', '-m', 'mlx_lm', 'server', '--model', starterDir, '--port', String(port)],
    { env: pythonEnv(1), stdio: 'ignore' },
  )
  const url = `http://127.0.0.1:${port}`
  const isUp = (): Promise<boolean> =>
    fetch(`${url}/health`).then(
      (response) => response.ok,
      () => false,
    )
  await until(isUp, 'mlx_lm.server', 60_000)
  await seenBy('mlx_lm.server, its process killed', url, starterDir, () => server.kill('SIGKILL'))
  if (flags.url === undefined) return
  await seenBy(flags.url, flags.url, flags.model, () => {
    if (flags.kill !== undefined) spawnSync('sh', ['-c', flags.kill], { stdio: 'inherit' })
  })
}

async function seenBy(name: string, url: string, asked: string, hit: () => void): Promise<void> {
  let pieces = 0
  const outcome = await askUrl(url, {
    model: asked,
    prompt: 'Tell me a long story about a fox who learns to sail.',
    temperature: 0,
    tokensMax: 80,
    onText: () => {
      pieces += 1
      if (pieces === 10) hit()
    },
  }).then(
    ({ finish, error }) => (finish === null ? `an answer without an end (${error ?? ''})` : finish),
    (error: unknown) => `a broken connection (${error instanceof Error ? error.message : 'error'})`,
  )
  console.log(`${name}\n  after ${pieces} pieces its client sees: ${outcome}`)
}

await bushelUnderFaults()
await othersUnderFaults()
