// Runs every suite, several lanes at a time where nothing is timed, and closes with one line that says how it went.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { prepare } from './prepare.ts'

const root = resolve(import.meta.dirname, '..')
const python = join(root, '.runtime', 'python', 'bin', 'python')

interface Suite {
  readonly name: string
  /** What it needs beside Node. */
  readonly needs: readonly ('browser' | 'namespaces')[]
  readonly minutesMax: number
  readonly run: (suite: Suite) => Promise<Counts>
}

interface Counts {
  readonly passed: number
  readonly failed: number
}

/** Fewer than this means that a suite has silently vanished. */
const testsMin = 1200

const { values: flags } = parseArgs({
  options: {
    long: { type: 'boolean' },
    only: { type: 'string', multiple: true },
    list: { type: 'boolean' },
  },
})

function nodeTests(
  files: readonly string[],
  options: { box?: boolean; env?: Record<string, string> } = {},
): Suite['run'] {
  return async ({ name, minutesMax }) => {
    const folder = mkdtempSync(join(tmpdir(), 'bushel-test-'))
    const countsFile = join(folder, 'counts.json')
    const args = [
      '--test',
      // Sockets and threads may outlive a test; but a forced end loses reports of tests that take no time at all.
      ...(files.some((file) => file.startsWith('src/')) ? [] : ['--test-force-exit']),
      '--test-concurrency=1',
      `--test-timeout=${minutesMax * 60_000}`,
      '--test-reporter=./test/reporter.ts',
      ...files,
    ]
    const command =
      options.box === true
        ? [join(root, 'test', 'e2e', 'in-box.sh'), process.execPath, ...args]
        : [process.execPath, ...args]
    const code = await run(command, {
      minutesMax,
      env: { ...options.env, BUSHEL_TEST_COUNTS: countsFile },
      suite: name,
    })
    try {
      const counts = JSON.parse(readFileSync(countsFile, 'utf8')) as Counts
      return code !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts
    } catch {
      return { passed: 0, failed: 1 }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

function command(...words: readonly string[]): Suite['run'] {
  return async ({ name, minutesMax }) =>
    (await run(words, { suite: name, minutesMax })) === 0
      ? { passed: 1, failed: 0 }
      : { passed: 0, failed: 1 }
}

/** Python's own runner; its closing lines carry the counts. */
function pythonTests(): Suite['run'] {
  return async ({ name, minutesMax }) => {
    let output = ''
    const words = [python, '-m', 'unittest', 'discover', '-s', 'worker/tests', '-t', 'worker']
    const env = {
      PYTHONPATH: join(root, 'worker'),
      PYTHONDONTWRITEBYTECODE: '1',
      ...mklEnv(),
      BUSHEL_STARTER: join(root, '.runtime', 'models', 'SmolLM2-135M-Instruct'),
    }
    const code = await run(words, {
      suite: name,
      minutesMax,
      env,
      onOutput: (text) => (output += text),
    })
    const ran = Number(/Ran (\d+) tests?/.exec(output)?.[1] ?? 0)
    const count = (word: string): number =>
      Number(new RegExp(`${word}=(\\d+)`).exec(output)?.[1] ?? 0)
    const failed =
      count('failures') + count('errors') + (code !== 0 && !/FAILED/.test(output) ? 1 : 0)
    return { passed: ran - count('failures') - count('errors') - count('skipped'), failed }
  }
}

function mklEnv(): Record<string, string> {
  const lib = join(root, '.runtime', 'python', 'lib')
  const mkl = readdirSync(lib).find((name) => name.startsWith('libmkl_rt.so'))
  return mkl === undefined ? {} : { LD_PRELOAD: join(lib, mkl) }
}

function filesIn(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join(folder, name))
    .sort()
}

const boxed = /\/hosts-[^/]*\.test\.ts$/
const e2e = filesIn('test/e2e')
const bin = (name: string): string => join(root, 'node_modules', '.bin', name)

const suites: readonly Suite[] = [
  { name: 'types', needs: [], minutesMax: 5, run: command('npm', 'run', '--silent', 'types') },
  {
    name: 'lint',
    needs: [],
    minutesMax: 5,
    run: command(bin('oxlint'), 'src', 'test', 'bench', 'web/src'),
  },
  {
    name: 'format',
    needs: [],
    minutesMax: 5,
    run: command('npm', 'run', '--silent', 'format:check'),
  },
  { name: 'unused', needs: [], minutesMax: 5, run: command(bin('knip')) },
  { name: 'gates', needs: [], minutesMax: 5, run: nodeTests(filesIn('test/gates')) },
  {
    name: 'unit',
    needs: [],
    minutesMax: 10,
    run: nodeTests(['src/**/*.test.ts', 'web/src/**/*.test.ts', ...filesIn('test/contracts')]),
  },
  {
    name: 'simulator',
    needs: [],
    minutesMax: 15,
    run: nodeTests(filesIn('test/simulator')),
  },
  { name: 'worker', needs: [], minutesMax: 15, run: pythonTests() },
  ...e2e.map((file): Suite => ({
    name: relative('test/e2e', file).replace('.test.ts', ''),
    needs: file.includes('page') ? ['browser'] : boxed.test(file) ? ['namespaces'] : [],
    minutesMax: 15,
    run: nodeTests([file], {
      box: boxed.test(file),
      ...(flags.long === true ? { env: { BUSHEL_LONG: '1' } } : {}),
    }),
  })),
  ...(flags.long === true
    ? filesIn('test/long').map((file): Suite => ({
        name: `long/${relative('test/long', file)}`,
        needs: boxed.test(file) ? ['namespaces'] : [],
        minutesMax: 120,
        run: nodeTests([file], { box: boxed.test(file) }),
      }))
    : []),
]

function run(
  words: readonly string[],
  options: {
    minutesMax: number
    env?: Record<string, string>
    onOutput?: (text: string) => void
    suite: string
  },
): Promise<number> {
  return new Promise((done) => {
    const [first = '', ...rest] = words
    const child = spawn(first, rest, {
      cwd: root,
      env: {
        ...process.env,
        // On two cores a rank that takes both would only wait for the other suites.
        ...(!isShared(options.suite)
          ? {}
          : { BUSHEL_RANK_THREADS: '1', MKL_NUM_THREADS: '1', OMP_NUM_THREADS: '1' }),
        ...(flags.long === true ? { BUSHEL_LONG: '1', BUSHEL_FAULTS: '500' } : {}),
        PATH: `${join(root, 'node_modules', '.bin')}:${process.env['PATH'] ?? ''}`,
        ...options.env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    const show = (chunk: Buffer): void => {
      const { suite } = options
      if (!isShared(suite)) process.stdout.write(chunk)
      else said.set(suite, (said.get(suite) ?? '') + chunk.toString())
      options.onOutput?.(chunk.toString())
    }
    child.stdout.on('data', show)
    child.stderr.on('data', show)
    // A suite that hangs is ended with everything it started.
    const timer = setTimeout(() => {
      show(Buffer.from(`\nended after ${options.minutesMax} minutes\n`))
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    }, options.minutesMax * 60_000)
    child.on('close', (code) => {
      clearTimeout(timer)
      done(code ?? 1)
    })
  })
}

/** What computes: two at a time, the longest first. */
const heavy: readonly string[] = [
  'worker',
  'types',
  'lint',
  'format',
  'unused',
  'gates',
  'unit',
  'simulator',
  'hosts-resume',
  'hosts-groups',
  'sdk',
  'structured',
  'python',
  'room',
  'embeddings',
  'bad-input',
]
/** What mostly waits runs beside it. What is in neither list is timed, and comes afterwards, alone. */
const light: readonly string[] = [
  'hosts-chaos',
  'package',
  'hosts-selftest',
  'fuzz',
  'waiting',
  'page',
]

function isShared(suite: string): boolean {
  return heavy.includes(suite) || light.includes(suite)
}

/** What suites that share the machine have printed: shown in one piece when they are over. */
const said = new Map<string, string>()

async function main(): Promise<number> {
  const wanted = suites.filter(
    (suite) => flags.only === undefined || flags.only.some((name) => suite.name.includes(name)),
  )
  if (flags.list === true) {
    for (const suite of wanted) console.log(suite.name)
    return 0
  }
  await prepare(new Set(wanted.flatMap((suite) => suite.needs)))
  const total = { passed: 0, failed: 0 }
  const rows: string[] = []
  const runSuite = async (suite: Suite): Promise<void> => {
    const startedMs = performance.now()
    const { passed, failed } = await suite.run(suite)
    total.passed += passed
    total.failed += failed
    rows.push(
      `${suite.name.padEnd(24)} ${String(passed).padStart(5)} passed ${String(failed).padStart(4)} failed ${((performance.now() - startedMs) / 1000).toFixed(1).padStart(8)} s`,
    )
  }
  const title = (name: string): string =>
    `\n── ${name} ${'─'.repeat(Math.max(3, 60 - name.length))}\n`
  const queueOf = (names: readonly string[]): Suite[] =>
    names.flatMap((name) => wanted.filter((suite) => suite.name === name))
  const drain = async (queue: Suite[]): Promise<void> => {
    for (let suite = queue.shift(); suite !== undefined; suite = queue.shift()) {
      await runSuite(suite)
      process.stdout.write(`${title(suite.name)}${said.get(suite.name) ?? ''}`)
    }
  }
  const computing = queueOf(heavy)
  await Promise.all([drain(computing), drain(computing), drain(queueOf(light))])
  for (const suite of wanted.filter((one) => !isShared(one.name))) {
    process.stdout.write(title(suite.name))
    await runSuite(suite)
  }
  console.log(`\n${rows.join('\n')}`)
  if (flags.only === undefined && total.passed + total.failed < testsMin) {
    console.log(
      `only ${total.passed + total.failed} tests ran; there should be at least ${testsMin}`,
    )
    total.failed += 1
  }
  console.log(`\n${total.passed} passed, ${total.failed} failed`)
  return total.failed === 0 ? 0 : 1
}

process.exit(await main())
