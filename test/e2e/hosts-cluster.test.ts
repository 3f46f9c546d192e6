// Three hosts that become one cluster and stay one through everything that can be done to them here.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type { ClusterView, DeploymentView, MachineView } from '../../src/wire/cluster-view.ts'
import { ask } from './client.ts'
import { z } from 'zod'
import { linkView } from '../../src/wire/link-measurement.ts'
import { Box, type Host, addScriptedModel, rankPids, until } from './hosts.ts'

const model = 'scripted-8'
/** The promise: back to the desired state within this, plus loading, which a script does at once. */
const recoverMsMax = 15_000

const view = async (host: Host): Promise<ClusterView | null> =>
  (await host.get('/cluster/view')) as ClusterView | null
const machines = async (host: Host): Promise<MachineView[]> => (await view(host))?.machines ?? []
const deployments = async (host: Host): Promise<DeploymentView[]> =>
  (await view(host))?.deployments ?? []

function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

function residentBytes(pid: number): number {
  const match = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(match?.[1] ?? 0) * 1024
}

describe('a cluster of three hosts', () => {
  let box: Box
  let a: Host, b: Host, c: Host
  let firstCode = ''

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

  /** Every host sees every other alive, and exactly one group with one rank serves the model. */
  const settled = async (): Promise<boolean> => {
    for (const host of box.hosts) {
      const alive = (await machines(host)).filter((machine) => machine.state === 'alive')
      const [deployment] = await deployments(host)
      if (
        alive.length !== 3 ||
        deployment?.groups.length !== 1 ||
        deployment.groups[0]?.status !== 'ready'
      )
        return false
    }
    return rankPids().length === 1
  }
  const recovers = async (what: string): Promise<void> => {
    const tookMs = await until(settled, `the desired state after ${what}`, recoverMsMax)
    console.log(`  ${what}: settled after ${(tookMs / 1000).toFixed(1)} s`)
    const answer = await ask(b, { model, prompt: what, seed: 1 })
    assert.equal(answer.error, null)
    assert.equal(answer.finish, 'stop')
  }
  const servingHost = async (): Promise<Host> => {
    const [deployment] = await deployments(a)
    const name = deployment?.groups[0]?.stages[0]?.ranks[0]?.machine
    return box.host(name ?? '')
  }

  test('three hosts with one code are one cluster within 5 s, seen from each on both links', async () => {
    for (const host of box.hosts) host.up('--model', 'none')
    for (const host of box.hosts)
      await until(() => host.isUp(), `the daemon of ${host.name}`, 60_000)
    const { code } = (await a.json('invite', '--uses', '2')) as { code: string }
    firstCode = code
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
      10_000,
    )
    console.log(`  one cluster on both links ${(tookMs / 1000).toFixed(1)} s after the last join`)
    assert.ok(tookMs < 5000, `took ${tookMs} ms`)
  })

  test('the API of every host serves a model that was loaded on one', async () => {
    await a.json('load', model)
    const answers = await Promise.all(
      box.hosts.map((host) => ask(host, { model, prompt: 'same', seed: 7 })),
    )
    assert.deepEqual(
      answers.map((answer) => answer.finish),
      ['stop', 'stop', 'stop'],
    )
    assert.equal(new Set(answers.map((answer) => answer.text)).size, 1)
    assert.ok((answers[0]?.text.length ?? 0) > 20)
    assert.equal(rankPids().length, 1)
  })

  test('an idle daemon in a cluster of three uses under 2% of a core and 180 MB', async () => {
    const pids = box.hosts.map((host) => host.daemonPid)
    const started = pids.map(cpuMs)
    const windowMs = 20_000
    await new Promise((done) => setTimeout(done, windowMs))
    for (const [index, pid] of pids.entries()) {
      const share = (cpuMs(pid) - (started[index] ?? 0)) / windowMs
      const bytes = residentBytes(pid)
      console.log(
        `  daemon ${box.hosts[index]?.name}: ${(share * 100).toFixed(2)}% of a core, ${Math.round(bytes / 1e6)} MB`,
      )
      assert.ok(share < 0.02, `${share * 100}% of a core`)
      assert.ok(bytes < 180e6, `${bytes} bytes`)
    }
  })

  test('a saturated bulk copy over every link raises no suspicion', async () => {
    const measuring = a.cli('links', '--measure', '--seconds', '2', '--json')
    let ended = false
    void measuring.then(() => (ended = true))
    const states = new Set<string>()
    while (!ended) {
      for (const host of box.hosts)
        for (const machine of await machines(host)) states.add(machine.state)
      await new Promise((done) => setTimeout(done, 100))
    }
    const { code, stdout, stderr } = await measuring
    assert.equal(code, 0, stderr)
    const links = z.array(linkView).parse(JSON.parse(stdout))
    assert.equal(links.length, 4)
    for (const { link, measured } of links) {
      const gbps = measured?.gbps?.slower ?? Number.NaN
      console.log(`  ${link}: ${gbps.toFixed(1)} Gb/s`)
      assert.ok(gbps > 0.16)
    }
    assert.deepEqual([...states], ['alive'])
  })

  test('a rank killed in the middle of an answer: the reader on another host gets the whole of it', async () => {
    const unbroken = await ask(b, { model, prompt: 'long', seed: 3 })
    const streaming = ask(b, { model, prompt: 'long', seed: 3 })
    await new Promise((done) => setTimeout(done, 300))
    for (const pid of rankPids()) process.kill(pid, 'SIGKILL')
    assert.equal((await streaming).text, unbroken.text)
    await recovers('a rank killed')
  })

  test('the coordinator killed: no other group stops, another coordinates within 8 s, load works again', async () => {
    const seen = await view(a)
    assert.ok(seen !== null)
    const { coordinator, machines: all } = seen
    const name = all.find((machine) => machine.id === coordinator)?.name ?? ''
    const lost = box.host(name)
    const others = box.hosts.filter((host) => host !== lost)
    const serving = await servingHost()
    const before = rankPids()
    await lost.killDaemon()
    const [other] = others
    assert.ok(other !== undefined)
    const tookMs = await until(
      async () => {
        const now = (await view(other))?.coordinator
        return now != null && now !== coordinator
      },
      'another coordinator',
      8000,
    )
    console.log(`  another coordinates after ${(tookMs / 1000).toFixed(1)} s`)
    if (serving !== lost)
      assert.deepEqual(rankPids(), before, 'the group of another machine went on')
    await other.json('load', model)
    lost.up('--model', 'none')
    await recovers('the coordinator killed')
  })

  test('a serving daemon killed: its rank goes with it, and the model is served again', async () => {
    const serving = await servingHost()
    await serving.killDaemon()
    await until(() => rankPids().length <= 1, 'the orphan to end', 5000)
    await until(
      async () => {
        const answer = await ask(serving === b ? c : b, { model, prompt: 'again', seed: 2 })
        return answer.finish === 'stop'
      },
      'an answer from the others',
      recoverMsMax,
    )
    serving.up('--model', 'none')
    await recovers('a serving daemon killed')
  })

  test('the thunderbolt cable pulled: the machine stays alive on the other link', async () => {
    box.link('a', 'b', 'thunderbolt', 'down')
    await until(
      async () => {
        const peer = (await machines(a)).find((machine) => machine.name === 'b')
        return (
          peer?.state === 'alive' &&
          peer.links.filter((link) => link.heardAgoMs < 1500).length === 1
        )
      },
      'one link to be down',
      8000,
    )
    await recovers('a cable pulled')
    box.link('a', 'b', 'thunderbolt', 'up')
    await until(
      async () => {
        const peer = (await machines(a)).find((machine) => machine.name === 'b')
        return (peer?.links.filter((link) => link.heardAgoMs < 1500).length ?? 0) === 2
      },
      'both links to be up again',
      recoverMsMax,
    )
  })

  test('a partition and its healing', async () => {
    box.partition(['a'], ['b', 'c'], 'down')
    await until(
      async () => (await machines(a)).filter((machine) => machine.state === 'dead').length === 2,
      'a to be alone',
      8000,
    )
    await new Promise((done) => setTimeout(done, 4000))
    const left = await ask(a, { model, prompt: 'alone', seed: 5 })
    const right = await ask(b, { model, prompt: 'alone', seed: 5 })
    assert.equal(left.text, right.text, 'each side serves what fits')
    box.partition(['a'], ['b', 'c'], 'up')
    await recovers('a partition healed')
  })

  test('an asymmetric cut: a is not heard by b, yet hears it', async () => {
    box.oneWayCut('a', 'b', 'cut')
    await new Promise((done) => setTimeout(done, 6000))
    assert.equal((await ask(c, { model, prompt: 'one way', seed: 6 })).finish, 'stop')
    box.oneWayCut('a', 'b', 'healed')
    await recovers('an asymmetric cut healed')
  })

  test('all daemons killed and started again: the desired state is still there', async () => {
    for (const host of box.hosts) await host.killDaemon()
    await until(() => rankPids().length === 0, 'all ranks to end', 5000)
    for (const host of box.hosts) host.up('--model', 'none')
    await recovers('all daemons killed')
  })

  test('a code that was used up, a wrong one and one cut off are refused within 2 s, and change nothing', async () => {
    const outsider = await box.addHost('d', ['a'])
    addScriptedModel(outsider, model)
    outsider.up('--model', 'none')
    await until(() => outsider.isUp(), 'the daemon of d', 60_000)
    const rosterBefore = (await machines(a)).length
    const wrong = firstCode.replace(
      /^(..)(.)/,
      (_, head: string, char: string) => `${head}${char === 'a' ? 'b' : 'a'}`,
    )
    const cases = [
      [firstCode, /used|not known/],
      [wrong, /no invitation code/],
      [firstCode.slice(0, -7), /no invitation code/],
      ['hello', /no invitation code/],
    ] as const
    for (const [code, reason] of cases) {
      const startedMs = performance.now()
      const { code: exit, stderr } = await outsider.cli('join', code)
      assert.notEqual(exit, 0)
      assert.match(stderr, reason)
      assert.ok(
        performance.now() - startedMs < 4000,
        'refused quickly, the start of the command included',
      )
    }
    assert.equal((await machines(a)).length, rosterBefore)
    assert.equal((await machines(outsider)).length, 1)
  })

  test('a machine that asks is approved after both sides show the same four words', async () => {
    const outsider = box.host('d')
    await until(
      async () =>
        outsider.sh('true') === '' && ((await outsider.json('machines')) as unknown[]).length === 1,
      'd',
    )
    const asking = outsider.cli('join', '--ask', 'a')
    const waiting = async (): Promise<{ name: string; words: string }[]> =>
      (await a.json('approve')) as { name: string; words: string }[]
    await until(async () => (await waiting()).length === 1, 'd to ask', 10_000)
    const [request] = await waiting()
    assert.ok(request !== undefined && request.name === 'd')
    assert.equal(request.words.split(' ').length, 4)
    await a.json('approve', 'd')
    const { code, stderr } = await asking
    assert.equal(code, 0, stderr)
    assert.ok(stderr.includes(request.words), 'both sides showed the same words')
    await until(
      async () =>
        (await machines(a)).some((machine) => machine.name === 'd' && machine.state === 'alive'),
      'd to be alive',
    )
  })

  test('a removed machine is shut out on every machine within 5 s, and stays out after a restart', async () => {
    const outsider = box.host('d')
    await b.json('machines', 'remove', 'd')
    const tookMs = await until(
      async () => {
        for (const host of [a, b, c])
          if ((await machines(host)).some((machine) => machine.name === 'd')) return false
        return (await machines(outsider)).length === 1
      },
      'd to be shut out',
      8000,
    )
    console.log(`  shut out everywhere after ${(tookMs / 1000).toFixed(1)} s`)
    assert.ok(tookMs < 5000)
    await outsider.stopDaemon()
    outsider.up('--model', 'none')
    await until(() => outsider.isUp(), 'd again', 60_000)
    await new Promise((done) => setTimeout(done, 2000))
    assert.equal((await machines(a)).length, 3)
    assert.equal((await machines(outsider)).length, 1)
  })

  test('leaving takes a machine out, and its state of before is archived', async () => {
    await c.json('leave')
    await until(
      async () => (await machines(a)).length === 2 && (await machines(c)).length === 1,
      'c to be out',
      8000,
    ).catch(async (error: unknown) => {
      const seen = { a: await machines(a), b: await machines(b), c: await machines(c) }
      throw new Error(`${String(error)}: ${JSON.stringify(seen)}`)
    })
    assert.match(c.sh('ls $BUSHEL_HOME/state/archive'), /removed|joining/)
  })

  test('stopping every daemon leaves no process', async () => {
    for (const host of box.hosts) await host.stopDaemon()
    assert.equal(rankPids().length, 0)
    const left = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
      .split('\n')
      .filter((line) => line.includes('cli/main'))
    assert.deepEqual(left, [])
  })
})
