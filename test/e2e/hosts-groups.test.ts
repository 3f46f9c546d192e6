// One model over three hosts, cut in every way there is: the answers are those of one machine.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { DeploymentView } from '../../src/wire/cluster-view.ts'
import { type Scored, askScored } from './scored.ts'
import { Box, type Host, addScriptedModel, rankPids, until } from './hosts.ts'
import { ask } from './client.ts'
import { tryStructured } from '../support/structured.ts'

const starter = 'SmolLM2-135M-Instruct'
const prompts = [
  'What is the capital of France?',
  'Count from one to ten.',
  'Name three colours.',
  'Why is the sky blue?',
  'Write a line about apples.',
  'Who wrote Hamlet?',
  'Say hello in Spanish.',
  'What is two plus two?',
]
const tokensMax = 8
const isLong = process.env['BUSHEL_LONG'] === '1'

describe('groups over three hosts', () => {
  let box: Box
  let a: Host, b: Host, c: Host
  let reference: readonly Scored[] = []

  before(async () => {
    box = await Box.open(['a', 'b', 'c'])
    a = box.host('a')
    b = box.host('b')
    c = box.host('c')
    addScriptedModel(a, 'only-on-a', { tokensPerSecond: 200, layers: 9 })
    for (const host of box.hosts) host.up('--model', 'none', '--memory', '4GB')
    await box.gather(a)
  })

  after(async () => {
    await box.close()
  })

  const deployment = async (model: string): Promise<DeploymentView | undefined> =>
    ((await a.get('/cluster/deployments')) as DeploymentView[] | null)?.find(
      (view) => view.model === model,
    )

  /** Loads it this way and waits until exactly that serves, and nothing else any more. */
  async function load(...flags: readonly string[]): Promise<DeploymentView> {
    await a.json('load', starter, ...flags)
    const wanted = flags[flags.indexOf('--strategy') + 1] ?? 'single'
    await until(
      async () => {
        const groups = (await deployment(starter))?.groups ?? []
        return groups.length === 1 && groups[0]?.status === 'ready' && groups[0].strategy === wanted
      },
      `${starter} as ${wanted}`,
      120_000,
    )
    const view = await deployment(starter)
    assert.ok(view !== undefined)
    return view
  }

  /**
   * How many rows share a step decides in which order float32 sums are made, on one machine as well: up to 2e-5
   * was seen. A wrong mask is off by a thousandth and more.
   */
  const inCompany = 5e-5

  /** Eight at once, joining at different moments, two of them hung up on the way. */
  async function askAll(host: Host, asking = prompts): Promise<readonly Scored[]> {
    const hangUps = [new AbortController(), new AbortController()]
    const cut = hangUps.map((controller, index) =>
      ask(host, {
        model: starter,
        prompt: `Tell a long story number ${index}.`,
        temperature: 0,
        tokensMax: 40,
        signal: controller.signal,
      }).catch(() => null),
    )
    const asked = asking.map(async (prompt, index) => {
      await new Promise((done) => setTimeout(done, index * 150))
      if (index === 1) hangUps[0]?.abort()
      if (index === asking.length - 1) hangUps[1]?.abort()
      return askScored(host, { model: starter, prompt, tokensMax })
    })
    const answers = await Promise.all(asked)
    await Promise.all(cut)
    return answers
  }

  function compare(answers: readonly Scored[], tolerance: number): void {
    let widest = 0
    for (const [index, answer] of answers.entries()) {
      const expected = reference[index]
      assert.equal(answer.text, expected?.text, prompts[index] ?? '')
      for (const [at, value] of answer.logprobs.entries())
        widest = Math.max(widest, Math.abs(value - (expected?.logprobs[at] ?? NaN)))
    }
    console.log(`  widest difference of a logprob: ${widest.toExponential(1)}`)
    assert.ok(widest <= tolerance, `a logprob differs by ${widest}`)
  }

  test('on one machine: what the others are held against', async () => {
    await load('--strategy', 'single', '--machines', 'a')
    const alone: Scored[] = []
    for (const prompt of prompts)
      alone.push(await askScored(a, { model: starter, prompt, tokensMax }))
    reference = alone
    assert.match(reference[0]?.text ?? '', /Paris/)
    compare(await askAll(b), inCompany)
  })

  test('a pipeline of 14, 10 and 6 layers gives the same tokens and logprobs to 1e-5', async () => {
    const view = await load('--strategy', 'pipeline', '--layers', '14,10,6', '--machines', 'a,b,c')
    assert.deepEqual(
      view.groups[0]?.stages.map((stage) => [stage.layers, stage.ranks[0]?.machine]),
      [
        [[0, 14], 'a'],
        [[14, 24], 'b'],
        [[24, 30], 'c'],
      ],
    )
    compare(await askAll(c), inCompany)
    const alone: Scored[] = []
    for (const prompt of prompts.slice(0, 3))
      alone.push(await askScored(c, { model: starter, prompt, tokensMax }))
    compare(alone, 1e-5)
    const drawn = await b.cli('ps', starter)
    assert.match(drawn.stdout, /stage 2 {2}layers 24–29[^]*rank 2 on c/)
  })

  test('schemas are kept over a pipeline, by the masks that its head makes for the last stage', async (t) => {
    await load('--strategy', 'pipeline', '--layers', '14,10,6', '--machines', 'a,b,c')
    // Six that must be refused are among them.
    const count = isLong ? 40 : 12
    const { valid, cut, refused } = await tryStructured(b, { model: starter, count })
    t.diagnostic(`${valid} valid, ${cut} cut at max_tokens, ${refused.length} refused`)
    assert.equal(valid + cut + refused.length, count)
    assert.ok(valid >= count / 4, `${valid} of ${count} schemas gave a whole answer`)
  })

  test('tensor over three, and uneven over two, give the same tokens and logprobs to 1e-3', async () => {
    await load('--strategy', 'tensor', '--machines', 'a,b,c')
    // Three ranks that wait for each other on two cores take seconds for a step: few words will do.
    compare(await askAll(a, isLong ? prompts : prompts.slice(0, 2)), 1e-3)
    const view = await load('--strategy', 'tensor', '--machines', 'a,b')
    assert.equal(view.groups[0]?.stages[0]?.ranks.length, 2)
    compare(await askAll(c), 1e-3)
  })

  test('a stage that is a world of two, and one machine behind it', async () => {
    const view = await load('--strategy', 'tensor-pipeline', '--machines', 'a,b,c')
    assert.deepEqual(
      view.groups[0]?.stages.map((stage) => stage.ranks.length),
      [2, 1],
    )
    compare(await askAll(b, isLong ? prompts : prompts.slice(0, 4)), 1e-3)
  })

  test('what cannot be is refused before anything is stopped, with what would work', async () => {
    const ranks = rankPids().join()
    const refused = async (...flags: readonly string[]): Promise<string> => {
      const { code, stderr } = await a.cli('load', starter, ...flags)
      assert.notEqual(code, 0, flags.join(' '))
      return stderr
    }
    assert.match(
      await refused('--strategy', 'pipeline', '--layers', '14,10'),
      /add up to 24, and SmolLM2-135M-Instruct has 30/,
    )
    assert.match(
      await refused('--strategy', 'pipeline', '--layers', `${'1,'.repeat(30)}1`),
      /31 stages are more than the 30 layers/,
    )
    assert.match(await refused('--machines', 'a,nobody'), /there is no machine "nobody".*a, b, c/)
    assert.match(await refused('--strategy', 'expert'), /no experts/)
    assert.match(
      await refused('--strategy', 'tensor', '--backend', 'jaccl'),
      /JACCL cannot be used: .*[abc] is no Mac/,
    )
    assert.equal(rankPids().join(), ranks)
  })

  test('a machine without the files gets them, and two deployments share the machines', async () => {
    await a.json('load', 'only-on-a', '--strategy', 'pipeline', '--layers', '3,3,3')
    await until(
      async () => (await deployment('only-on-a'))?.status === 'ready',
      'the copied model',
      60_000,
    )
    const view = await deployment('only-on-a')
    const machines = view?.groups[0]?.stages.map((stage) => stage.ranks[0]?.machine) ?? []
    assert.deepEqual(
      machines.map(String).toSorted((x, y) => x.localeCompare(y)),
      ['a', 'b', 'c'],
    )
    const [scripted, real] = await Promise.all([
      ask(c, { model: 'only-on-a', prompt: 'both', seed: 3 }),
      askScored(c, { model: starter, prompt: prompts[0] ?? '', tokensMax }),
    ])
    assert.equal(scripted.finish, 'stop')
    assert.equal(real.text, reference[0]?.text)
  })
})
