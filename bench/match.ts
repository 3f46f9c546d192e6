// bushel bench match: how often an answer that lost its rank is, word for word, the answer it would have been.
//
// Every question is asked twice: once in peace, once with the rank killed in the middle. A resumed answer reads what
// was said again in one go instead of word by word; kernels that sum in another order may then prefer another
// word. On the CPU backend they do not; run this on any other to know.
import { parseArgs } from 'node:util'
import { type Answer, askUrl, longestPause } from '../test/e2e/client.ts'
import { type TestDaemon, startDaemon } from '../test/e2e/daemon.ts'
import { median } from './lib/stats.ts'

const { values: flags } = parseArgs({
  options: {
    model: { type: 'string' },
    runs: { type: 'string', default: '20' },
    tokens: { type: 'string', default: '80' },
    json: { type: 'boolean' },
  },
})

const questions = [
  'Tell me a story about a fox who learns to sail.',
  'Explain how bread is made, step by step.',
  'What should one know before buying a used bicycle?',
  'Describe the sea to somebody who has never seen it.',
  'Why do leaves fall in autumn?',
]

interface Run {
  readonly sampled: boolean
  readonly killedAfter: number
  readonly isWhole: boolean
  readonly isEqual: boolean
  /** Characters until the two part ways; null when they do not. */
  readonly differsAt: number | null
  readonly pauseMs: number
}

async function runOnce(daemon: TestDaemon, model: string, index: number): Promise<Run> {
  const sampled = index % 2 === 1
  const asked = {
    model,
    prompt: questions[index % questions.length] ?? '',
    tokensMax: Number(flags.tokens),
    temperature: sampled ? 0.8 : 0,
    seed: 1000 + index,
  }
  const unbroken = await askUrl(daemon.url, asked)
  const killedAfter = 1 + ((index * 7) % Math.max(1, unbroken.arrivalsMs.length - 2))
  let pieces = 0
  const broken = await askUrl(daemon.url, {
    ...asked,
    onText: () => {
      pieces += 1
      if (pieces === killedAfter) killRank(daemon)
    },
  })
  return {
    sampled,
    killedAfter,
    isWhole: broken.error === null && broken.finish === unbroken.finish,
    isEqual: broken.text === unbroken.text,
    differsAt: firstDifference(unbroken, broken),
    pauseMs: longestPause(broken),
  }
}

function killRank(daemon: TestDaemon): void {
  for (const pid of daemon.processes()) if (pid !== daemon.pid) process.kill(pid, 'SIGKILL')
}

function firstDifference(one: Answer, other: Answer): number | null {
  if (one.text === other.text) return null
  const length = Math.min(one.text.length, other.text.length)
  for (let at = 0; at < length; at++) if (one.text[at] !== other.text[at]) return at
  return length
}

async function main(): Promise<number> {
  const daemon = await startDaemon(
    flags.model === undefined ? {} : { args: ['--model', flags.model] },
  )
  try {
    const listed = (await (await fetch(`${daemon.url}/v1/models`)).json()) as {
      data: { id: string }[]
    }
    const model = listed.data[0]?.id ?? ''
    const runs: Run[] = []
    for (let index = 0; index < Number(flags.runs); index++) {
      const run = await runOnce(daemon, model, index)
      runs.push(run)
      const how = run.isEqual ? 'the same' : `differs after ${run.differsAt ?? 0} characters`
      console.error(
        `  ${run.sampled ? 'sampled' : 'greedy '} killed after ${String(run.killedAfter).padStart(3)} pieces: ${run.isWhole ? how : 'NOT WHOLE'}, pause ${(run.pauseMs / 1000).toFixed(1)} s`,
      )
    }
    report(model, runs)
    return runs.every((run) => run.isWhole) ? 0 : 1
  } finally {
    await daemon.stop()
  }
}

function report(model: string, runs: readonly Run[]): void {
  const same = runs.filter((run) => run.isEqual).length
  const pause = median(runs.map((run) => run.pauseMs))
  if (flags.json === true) {
    console.log(JSON.stringify({ model, runs, matchRate: same / runs.length }, null, 2))
    return
  }
  const lost = runs.filter((run) => !run.isWhole).length
  console.log(
    `${model}: ${same} of ${runs.length} resumed answers are the unbroken ones (${((same / runs.length) * 100).toFixed(0)}%), ${lost} lost, median pause ${(pause / 1000).toFixed(1)} s`,
  )
}

process.exit(await main())
