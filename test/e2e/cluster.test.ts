// Three hosts that become one cluster and stay one through everything that can be done to them here.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { DeploymentView, MachineView } from '../../src/wire/cluster-view.ts'
import { ask } from './client.ts'
import { Box, type Host, addScriptedModel, rankPids, until } from './hosts.ts'

const model = 'scripted-8'

describe('a cluster of three hosts', () => {
  let box: Box
  let a: Host, b: Host, c: Host

  before(async () => {
    box = await Box.open(['a', 'b', 'c'])
    a = box.host('a')
    b = box.host('b')
    c = box.host('c')
    for (const host of box.hosts) addScriptedModel(host, model, { tokensPerSecond: 100 })
  })

  after(async () => {
    await box.close()
  })

  const machines = async (host: Host): Promise<MachineView[]> =>
    (await host.json('machines')) as MachineView[]
  const alive = async (host: Host): Promise<string[]> =>
    (await machines(host))
      .filter((machine) => machine.state === 'alive')
      .map((machine) => machine.name)
  const deployments = async (host: Host): Promise<DeploymentView[]> =>
    (await host.json('ps')) as DeploymentView[]
  /** Everyone sees everyone, the model is ready, and exactly one rank serves it. */
  const settled = async (): Promise<boolean> => {
    for (const host of box.hosts) {
      if ((await alive(host)).length !== 3) return false
      const [deployment] = await deployments(host)
      if (
        deployment?.groups.filter((group) => group.status === 'ready').length !== 1 ||
        deployment.groups.length !== 1
      )
        return false
    }
    return rankPids().length === 1
  }

  test('three hosts with one code are one cluster within 5 s, seen from each on both links', async () => {
    for (const host of box.hosts) host.up('--model', 'none')
    await until(async () => (await a.cli('status')).code === 0, 'the daemon of a')
    const { code } = (await a.json('invite', '--uses', '2')) as { code: string }
    await until(
      async () => (await b.cli('status')).code === 0 && (await c.cli('status')).code === 0,
      'the daemons of b and c',
    )
    await b.json('join', code)
    await c.json('join', code)
    const tookMs = await until(
      async () => {
        for (const host of box.hosts) {
          const others = (await machines(host)).filter((machine) => machine.name !== host.name)
          if (
            others.length !== 2 ||
            others.some((machine) => machine.state !== 'alive' || machine.links.length < 2)
          )
            return false
        }
        return true
      },
      'all three to see each other on both links',
      15_000,
    )
    console.log(`one cluster on both links after ${Math.round(tookMs)} ms`)
  })

  test('a model loaded on one host is served by the API of every host', async () => {
    await a.json('load', model)
    for (const host of box.hosts) {
      const answer = await ask(host, { model, prompt: 'hello', seed: 7 })
      assert.equal(answer.finish, 'stop')
      assert.ok(answer.text.length > 20)
    }
    const texts = await Promise.all(
      box.hosts.map((host) => ask(host, { model, prompt: 'same', seed: 7 })),
    )
    assert.equal(new Set(texts.map((answer) => answer.text)).size, 1)
    assert.equal(rankPids().length, 1)
  })

  test('a stream goes on when the rank is killed, read from another host', async () => {
    const unbroken = await ask(b, { model, prompt: 'long', seed: 3 })
    const streaming = ask(b, { model, prompt: 'long', seed: 3 })
    await new Promise((done) => setTimeout(done, 300))
    for (const pid of rankPids()) process.kill(pid, 'SIGKILL')
    assert.equal((await streaming).text, unbroken.text)
    await until(settled, 'the cluster to settle')
  })
})
