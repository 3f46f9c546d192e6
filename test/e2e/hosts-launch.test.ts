// A program launched over three hosts: it adds up, its ranks end together, and nothing of it is left.
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Diagnosis } from '../../src/core/doctor/run-doctor.ts'
import type { ClusterTelemetry } from '../../src/cli/daemon/telemetry-exchange.ts'
import { isFresh } from '../../src/core/telemetry/telemetry.ts'
import type { LinkView } from '../../src/wire/link-measurement.ts'
import { Box, type Host, until } from './hosts.ts'

const sumScript = `
import sys, mlx.core as mx
from helper import double
mx.set_default_device(mx.cpu)
group = mx.distributed.init(strict=True, backend="ring")
total = mx.distributed.all_sum(mx.array([double(group.rank() + 1.0)]), group=group)
word = sys.stdin.readline().strip() if group.rank() == 0 else ("empty" if sys.stdin.read() == "" else "full")
print(f"rank {group.rank()} of {group.size()} sum {total.item()} args {sys.argv[1:]} stdin {word}", flush=True)
`
const helper = 'def double(x):\n    return x * 2\n'

/** Waits for ever in Python or in a collective; TERM is not enough for the stubborn one. */
const waitScript = `
import signal, subprocess, sys, time, mlx.core as mx
mx.set_default_device(mx.cpu)
group = mx.distributed.init(strict=True, backend="ring")
mx.eval(mx.distributed.all_sum(mx.ones((1,)), group=group))
if sys.argv[1:] == ["stubborn"]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "launches"], start_new_session=True)
def heard(number, frame):
    print("heard", number, flush=True)
    sys.exit(7)
signal.signal(signal.SIGINT, heard)
print("waits", flush=True)
while True:
    time.sleep(0.05)
`

/** What the operating system cannot say of a cable that is none. */
function configOf(name: string): string {
  const others = ['a', 'b', 'c'].filter((other) => other !== name)
  const links = others.flatMap((other) => [
    `[links.tb-${other}]\nkind = "thunderbolt"\ngbps = 0.3`,
    `[links.eth-${other}]\nkind = "ethernet"\ngbps = 0.1`,
  ])
  return `allow_launch = true\n${links.join('\n')}\n`
}

interface Running {
  readonly child: ChildProcess
  readonly output: () => string
  readonly ended: Promise<number>
}

describe('launches over three hosts', () => {
  let box: Box
  let a: Host, b: Host, c: Host

  before(async () => {
    // Here the links are measured when they come up, as on anybody's machines.
    process.env['BUSHEL_MEASURE_LINKS'] = 'on'
    box = await Box.open(['a', 'b', 'c'])
    a = box.host('a')
    b = box.host('b')
    c = box.host('c')
    for (const host of box.hosts) host.write('config.toml', configOf(host.name))
    a.write('program/sum.py', sumScript)
    a.write('program/helper.py', helper)
    a.write('waiting/wait.py', waitScript)
    for (const host of box.hosts) host.up('--model', 'none', '--memory', '1GB')
    await box.gather(a)
    await box.allHear()
  })

  after(async () => {
    await box.close()
  })

  function launch(...words: readonly string[]): Running {
    const child = a.spawnCli(['launch', ...words])
    let text = ''
    child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()))
    child.stderr?.on('data', (chunk: Buffer) => (text += chunk.toString()))
    const ended = new Promise<number>((done) => child.on('close', (code) => done(code ?? 1)))
    return { child, output: () => text, ended }
  }

  const waiting = async (run: Running, ranks: number): Promise<void> => {
    await until(
      () => run.output().split('waits').length > ranks,
      `ranks that wait: ${run.output()}`,
    )
  }

  /** No process of a launch, and no folder of one, on any host. */
  async function nothingLeft(): Promise<void> {
    await until(() => launched().length === 0, 'the end of all launched processes', 3000)
    for (const host of box.hosts)
      assert.equal(host.sh('ls "$BUSHEL_HOME"/launches 2>/dev/null || true'), '')
  }

  test('every link was measured when it came up, and both of its machines know', async () => {
    for (const host of box.hosts)
      await until(async () => {
        const links = (await host.get('/cluster/links')) as LinkView[] | null
        return links?.length === 4 && links.every((link) => link.measured?.gbps != null)
      }, `the links of ${host.name} to be measured`)
  })

  test('the telemetry of every machine is there, fresh, and nothing is told that no tool tells', async () => {
    const { machines, silent, away } = (await b.json('telemetry')) as ClusterTelemetry
    assert.deepEqual([silent, away], [[], []])
    assert.deepEqual(machines.map(({ telemetry }) => telemetry.machine).toSorted(), ['a', 'b', 'c'])
    for (const { telemetry, nowMs } of machines) {
      const { cpuLoad, memoryUsedBytes, thermalPressure } = telemetry
      assert.ok(cpuLoad.known && cpuLoad.value.value >= 0 && cpuLoad.value.value <= 1)
      assert.ok(memoryUsedBytes.known && memoryUsedBytes.value.value > 0)
      assert.ok(isFresh(cpuLoad.value, nowMs) && isFresh(memoryUsedBytes.value, nowMs))
      assert.equal(thermalPressure.known, false)
    }
  })

  test('an all_sum over all machines prints the right sum on every rank', async () => {
    const run = launch('--machines', 'a,b,c', '--', join(a.home, 'program/sum.py'), '--steps', '2')
    run.child.stdin?.end('hello\n')
    assert.equal(await run.ended, 0, run.output())
    for (const [rank, host] of box.hosts.entries()) {
      const stdin = rank === 0 ? 'hello' : 'empty'
      const line = `[${rank} ${host.name}] rank ${rank} of 3 sum 12.0 args ['--steps', '2'] stdin ${stdin}\n`
      assert.ok(run.output().includes(line), run.output())
    }
    await nothingLeft()
  })

  test('a killed rank ends all others within two seconds, with its code', async () => {
    const run = launch('--', join(a.home, 'waiting/wait.py'), 'stubborn')
    await waiting(run, 3)
    const [victim] = launched().filter((one) => one.isScript && one.command.includes('stubborn'))
    assert.ok(victim !== undefined)
    const startedMs = performance.now()
    process.kill(victim.pid, 'SIGKILL')
    const code = await run.ended
    const tookMs = performance.now() - startedMs
    assert.deepEqual(launched(), [])
    assert.equal(code, 137, run.output())
    assert.match(run.output(), /rank \d on [abc] was ended by SIGKILL/)
    assert.ok(tookMs < 2000, `it took ${tookMs} ms`)
    await nothingLeft()
  })

  test('a signal reaches every rank, and their code comes back', async () => {
    const run = launch('--', join(a.home, 'waiting/wait.py'))
    await waiting(run, 3)
    run.child.kill('SIGINT')
    assert.equal(await run.ended, 7, run.output())
    assert.equal(run.output().split('heard 2').length - 1, 3, run.output())
    await nothingLeft()
  })

  test('a client that is killed takes its ranks with it', async () => {
    const run = launch('--', join(a.home, 'waiting/wait.py'), 'stubborn')
    await waiting(run, 3)
    run.child.kill('SIGKILL')
    await nothingLeft()
  })

  test('a machine that does not allow launches refuses, and says how to allow them', async () => {
    b.write('config.toml', configOf('b').replace('true', 'false'))
    const { code, stderr } = await a.cli('launch', '--', join(a.home, 'program/sum.py'))
    assert.equal(code, 1)
    assert.match(
      stderr,
      /Cannot launch: b does not allow launches; .*allow_launch = true.*config\.toml on b/,
    )
    b.write('config.toml', configOf('b'))
    await nothingLeft()
  })

  test('machines that are none, and a backend that cannot be, are refused in words', async () => {
    const script = join(a.home, 'program/sum.py')
    const tried: readonly (readonly [readonly string[], RegExp])[] = [
      [['--machines', 'a,zebra'], /no machine "zebra" in this cluster; there are: a, b, c/],
      [['--backend', 'jaccl'], /jaccl cannot be used; .*not JACCL: a is not a Mac/],
    ]
    await Promise.all(
      tried.map(async ([words, sentence]) => {
        const outcome = await a.cli('launch', ...words, '--', script)
        assert.equal(outcome.code, 1, outcome.stderr)
        assert.match(outcome.stderr, sentence)
      }),
    )
    await nothingLeft()
  })

  test('a link throttled to 50 Mb/s is measured within 15%, and flagged with the likely cause', async () => {
    const shape = ['tbf', 'rate', '50mbit', 'burst', '32kb', 'latency', '100ms']
    box.shape('a', 'b', 'thunderbolt', shape)
    box.shape('b', 'a', 'thunderbolt', shape)
    const links = (await a.json('links', 'b', '--measure')) as LinkView[]
    const slow = links.find((link) => link.link === 'tb-b~tb-a')?.measured
    console.log(`  throttled to 0.050 Gb/s, measured ${slow?.gbps?.slower.toFixed(3)} Gb/s`)
    for (const direction of ['forward', 'backward'] as const) {
      const gbps = slow?.gbps?.[direction] ?? 0
      assert.ok(Math.abs(gbps - 0.05) <= 0.05 * 0.15, `${direction} ${gbps} Gb/s`)
    }
    assert.equal(slow?.nominalGbps, 0.3)
    assert.equal(slow?.slow, true)
    // Which of them it is depends on how busy the computer is that runs this test.
    assert.match(slow?.likelyCause ?? '', /cable or a limit on the way|round trips vary widely/)
    const whole = links.find((link) => link.link === 'eth-b~eth-a')?.measured
    assert.equal(whole?.slow, false, JSON.stringify(whole))
    // The other end was told, and shows it beside the nominal figure.
    const { stdout } = await b.cli('links')
    assert.match(stdout, /a +tb-a~tb-b .* Mb\/s SLOW +300 Mb\/s/)
    assert.match(
      stdout,
      /a over tb-a~tb-b is slow: .* could be expected; likely (the cable|round trips)/,
    )
    // The doctor of a machine that has nothing to do with it names that link, and no other.
    const { findings } = (await c.json('doctor')) as Diagnosis
    const warned = findings.filter((one) => one.check === 'measured-links' && one.level === 'warn')
    assert.equal(warned.length, 1, JSON.stringify(warned))
    assert.deepEqual(warned[0]?.machines, ['a', 'b'])
    assert.match(
      warned[0]?.evidence ?? '',
      /the link from a \(tb-b\) to b \(tb-a\) carries \d+ Mb\/s \(300 Mb\/s nominal, .*measured .* ago; likely/,
    )
    assert.match(warned[0]?.next ?? '', /run "bushel links b --measure" on a/)
  })

  test('only the command line of this machine may launch, whatever keys there are', () => {
    const answer = a.sh(
      'curl -s -X POST -H "Authorization: Bearer any" -d "{}" http://127.0.0.1:28743/cluster/launch',
    )
    assert.match(answer, /daemon's own token/)
  })

  test('a daemon that is killed takes the ranks of every machine with it', async () => {
    const run = launch('--', join(a.home, 'waiting/wait.py'), 'stubborn')
    await waiting(run, 3)
    const startedMs = performance.now()
    await c.killDaemon()
    assert.equal(await run.ended, 1, run.output())
    assert.match(run.output(), /rank 2 on c was lost/)
    assert.ok(performance.now() - startedMs < 2500, `it took ${performance.now() - startedMs} ms`)
    await nothingLeft()
    // Whoever asks for all machines hears that one is away.
    await until(async () => {
      const { machines, away } = (await b.json('telemetry')) as ClusterTelemetry
      return machines.length === 2 && away.some(({ name }) => name === 'c')
    }, 'c to be told as away')
    const again = launch('--machines', 'a,b', '--', join(a.home, 'waiting/wait.py'), 'stubborn')
    await waiting(again, 2)
    await a.killDaemon()
    assert.equal(await again.ended, 1, again.output())
    assert.match(again.output(), /The daemon ended during the launch/)
    await nothingLeft()
  })
})

interface Launched {
  readonly pid: number
  readonly command: string
  readonly isScript: boolean
}

/** Scripts, keepers and what scripts have started, anywhere in the box. */
function launched(): readonly Launched[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return []
    try {
      const command = readFileSync(`/proc/${entry}/cmdline`, 'utf8').replaceAll('\0', ' ')
      if (!/python/.test(command) || !/launches/.test(command)) return []
      return [{ pid: Number(entry), command, isScript: !command.includes('launch_keeper') }]
    } catch {
      return []
    }
  })
}
