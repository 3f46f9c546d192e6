// A stream that has begun never breaks: a hundred faults under sixteen clients, with the scripted engine.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Chaos, chaosQuestions, describeChaos } from './chaos.ts'
import { Box, type Host, addScriptedModel, rankPids, until } from './hosts.ts'

const model = 'script'
const faults = Number(process.env['BUSHEL_FAULTS'] ?? 100)
const clients = 16

describe('chaos', () => {
  let box: Box
  let gateway: Host
  let victims: readonly Host[] = []

  before(async () => {
    box = await Box.open(['a', 'b', 'c', 'd'])
    gateway = box.host('d')
    victims = ['a', 'b', 'c'].map((name) => box.host(name))
    for (const host of victims) addScriptedModel(host, model, { tokensPerSecond: 40 })
    for (const host of victims) host.up('--model', 'none', '--memory', '4GB')
    gateway.up('--model', 'none', '--role', 'client')
    await box.gather(gateway)
  })

  after(async () => {
    await box.close()
  })

  async function survive(flags: readonly string[], share: number): Promise<void> {
    await gateway.json('load', model, ...flags)
    const chaos = new Chaos({ box, model, gateway, victims, questions: chaosQuestions, seed: 7 })
    await chaos.learn()
    await chaos.run({ clients, faults: Math.round(faults * share) })
    const { report } = chaos
    console.log(describeChaos(report))
    assert.deepEqual(report.lost, [])
    assert.deepEqual(report.wrong, [])
    assert.ok(report.resumed > 0, 'some answer was hit')
  }

  test('one machine at a time serves, and every answer is whole', async () => {
    await survive(['--strategy', 'single'], 0.3)
  })

  test('two replicas: the other one goes on', async () => {
    await survive(['--strategy', 'single', '--replicas', '2'], 0.3)
  })

  test('a pipeline over three machines', async () => {
    await survive(['--strategy', 'pipeline', '--replicas', '1'], 0.4)
  })

  test('afterwards the client explains pauses, and nothing is left behind', async () => {
    const reports = (await gateway.json('explain')) as { gaps: unknown[]; outcome: string }[]
    assert.ok(reports.some((report) => report.gaps.length > 0 && report.outcome === 'finished'))
    await gateway.json('unload', model)
    await until(() => rankPids().length === 0, 'no rank to be left', 60_000)
  })
})
