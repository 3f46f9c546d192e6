// bushel bench protocols: what grammars cost, what a kept prefix saves, and a thousand mixed requests.
//
// Ratios of things measured by turns, like bench serve; all pairs are printed.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type TestDaemon, startDaemon } from '../test/e2e/daemon.ts'
import { timedAsk } from './lib/client.ts'
import { mixedRequests } from './lib/mixed.ts'
import { programDir } from './lib/paths.ts'
import { type Verdict, decodeRate, median, verdict, verdictTable } from './lib/stats.ts'

const { values: flags } = parseArgs({
  options: {
    pairs: { type: 'string', default: '5' },
    requests: { type: 'string', default: '1000' },
    only: { type: 'string' },
    json: { type: 'boolean' },
  },
})
const pairs = Math.max(1, Number(flags.pairs))
const model = 'SmolLM2-135M-Instruct'
const tokens = 48

const say = (text: string): void => console.error(text)

/** Long enough that no answer comes to its end. */
const formed = {
  response_format: {
    type: 'json_schema',
    json_schema: {
      name: 'lines',
      schema: {
        type: 'array',
        items: { type: 'string', minLength: 40, maxLength: 400 },
        minItems: 20,
      },
    },
  },
}
const free = { ignore_eos: true }

function ask(daemon: TestDaemon, extra: Record<string, unknown>): Promise<number> {
  const prompt = 'Tell me a long story about a fox who learns to sail.'
  return timedAsk({ url: daemon.url, model, prompt, tokens, extra }).then(({ times }) =>
    decodeRate(times),
  )
}

/** Both rates of every pair side by side, and their ratios; who goes first changes. */
async function inTurns(
  first: () => Promise<number>,
  second: () => Promise<number>,
): Promise<readonly number[]> {
  const ratios: number[] = []
  for (let index = 0; index < pairs; index++) {
    const early = index % 2 === 0 ? await first() : await second()
    const late = index % 2 === 0 ? await second() : await first()
    const [mine, other] = index % 2 === 0 ? [early, late] : [late, early]
    say(`  with ${mine.toFixed(1)} tok/s, without ${other.toFixed(1)} tok/s`)
    ratios.push(mine / other)
  }
  return ratios
}

async function grammarCost(daemon: TestDaemon): Promise<Verdict[]> {
  say('a grammar, for its own row and for another …')
  await ask(daemon, formed)
  await ask(daemon, free)
  const own = await inTurns(
    () => ask(daemon, formed),
    () => ask(daemon, free),
  )
  const beside = async (extra: Record<string, unknown>): Promise<number> => {
    const [mine] = await Promise.all([ask(daemon, free), ask(daemon, extra)])
    return mine
  }
  const other = await inTurns(
    () => beside(formed),
    () => beside(free),
  )
  return [
    verdict('decode with a grammar / without', {
      value: median(own),
      atLeast: 0.9,
      all: own,
      unit: '×',
    }),
    verdict('decode beside a row with a grammar / without', {
      value: median(other),
      atLeast: 0.97,
      all: other,
      unit: '×',
    }),
  ]
}

/** A text of about so many tokens that begins like no other. */
function talk(number: number, words: number): string {
  const text =
    'the miller brought a sack of grain to the ship and counted every bushel twice'.split(' ')
  return `Story ${number}. ${Array.from({ length: words }, (_, at) => text[(at * (number + 3)) % text.length]).join(' ')}`
}

async function firstToken(
  daemon: TestDaemon,
  messages: readonly object[],
): Promise<{ seconds: number; text: string }> {
  const { times, text } = await timedAsk({
    url: daemon.url,
    model,
    prompt: '',
    tokens: 8,
    extra: { messages, ...free },
  })
  return { seconds: times[0] ?? Number.NaN, text }
}

async function secondTurn(daemon: TestDaemon): Promise<Verdict[]> {
  say('the second turn of a conversation of 2,000 tokens …')
  const ratios: number[] = []
  for (let index = 0; index < pairs; index++) {
    const opening = [{ role: 'user', content: talk(index, 1850) }]
    const first = await firstToken(daemon, opening)
    const second = [
      ...opening,
      { role: 'assistant', content: first.text },
      { role: 'user', content: 'And what happened then?' },
    ]
    const warm = await firstToken(daemon, second)
    ratios.push(warm.seconds / first.seconds)
    say(`  cold ${first.seconds.toFixed(2)} s, second turn ${warm.seconds.toFixed(2)} s`)
  }
  return [
    verdict('first token of the second turn / of the cold one', {
      value: median(ratios),
      atMost: 0.15,
      all: ratios,
      unit: '×',
    }),
  ]
}

async function mixed(daemon: TestDaemon): Promise<Verdict[]> {
  const count = Number(flags.requests)
  say(`${count} requests over all protocols, 16 at once …`)
  const { wrong, hungUp, seconds } = await mixedRequests(daemon.url, { model, count })
  for (const line of wrong.slice(0, 10)) say(`  ${line}`)
  say(`  ${seconds.toFixed(1)} s, ${hungUp} hung up`)
  return [
    verdict(`wrong answers of ${count} mixed requests`, {
      value: wrong.length,
      atMost: 0,
      all: [wrong.length],
      unit: '',
    }),
  ]
}

const parts = { grammar: grammarCost, prefix: secondTurn, mixed }

const daemon = await startDaemon()
const verdicts: Verdict[] = []
try {
  for (const [name, measure] of Object.entries(parts))
    if (flags.only === undefined || flags.only === name) verdicts.push(...(await measure(daemon)))
} finally {
  await daemon.stop()
}
const out = join(programDir, 'bench', 'out')
mkdirSync(out, { recursive: true })
writeFileSync(join(out, 'protocols.json'), `${JSON.stringify(verdicts, null, 1)}\n`)
console.log(flags.json === true ? JSON.stringify(verdicts) : verdictTable(verdicts))
process.exit(verdicts.every(({ ok }) => ok) ? 0 : 1)
