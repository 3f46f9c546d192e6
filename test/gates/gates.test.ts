// Each gate of "npm run check" is shown to close: a small project with our own settings passes them all, and
// one planted violation makes exactly the gate fail that is there for it.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'

const root = resolve(import.meta.dirname, '..', '..')
const bin = (name: string): string => join(root, 'node_modules', '.bin', name)

const settings = ['tsconfig.json', 'tsconfig.base.json', '.oxlintrc.json', '.oxfmtrc.json']
const sound: Readonly<Record<string, string>> = {
  'src/core/add.ts':
    '/** Adds. */\nexport function add(a: number, b: number): number {\n  return a + b\n}\n',
  'src/cli/main.ts': "import { add } from '../core/add.ts'\n\nprocess.exitCode = add(0, 0)\n",
  'src/core/add.test.ts':
    "import assert from 'node:assert/strict'\nimport { test } from 'node:test'\nimport { add } from './add.ts'\n\ntest('add() adds', () => {\n  assert.equal(add(1, 2), 3)\n})\n",
  'package.json': JSON.stringify({ name: 'gated', type: 'module' }),
  'knip.json': JSON.stringify({
    entry: ['src/cli/main.ts', 'src/**/*.test.ts'],
    project: ['src/**/*.ts'],
    ignoreDependencies: ['.*'],
    ignoreBinaries: ['.*'],
  }),
}

const gates = {
  types: [bin('tsc'), '-p', '.', '--noEmit'],
  'types of the core': [bin('tsc'), '-p', 'src/core', '--noEmit'],
  lint: [bin('oxlint'), 'src'],
  format: [bin('oxfmt'), '--check', 'src'],
  unused: [bin('knip')],
  unit: [
    process.execPath,
    '--test',
    `--test-reporter=${join(root, 'test', 'reporter.ts')}`,
    'src/**/*.test.ts',
  ],
} as const
type Gate = keyof typeof gates

describe('gates', () => {
  let folder = ''

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'bushel-gates-'))
    for (const name of settings) cpSync(join(root, name), join(folder, name))
    mkdirSync(join(folder, 'src', 'core'), { recursive: true })
    for (const name of ['test', 'bench']) mkdirSync(join(folder, name))
    cpSync(join(root, 'src/core/tsconfig.json'), join(folder, 'src/core/tsconfig.json'))
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    for (const [name, text] of Object.entries(sound)) plant(name, text)
  })

  after(() => {
    rmSync(folder, { recursive: true, force: true })
  })

  function plant(name: string, text: string): void {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }

  function run(gate: Gate): { code: number; output: string } {
    const [command, ...args] = gates[gate]
    const env: NodeJS.ProcessEnv = { ...process.env }
    delete env['NODE_TEST_CONTEXT']
    delete env['BUSHEL_TEST_COUNTS']
    const { status, stdout, stderr } = spawnSync(command, args, {
      cwd: folder,
      env,
      encoding: 'utf8',
    })
    return { code: status ?? -1, output: `${stdout}${stderr}` }
  }

  /** The gate fails because of what was planted, and says so. */
  function closes(gate: Gate, planted: { name: string; text: string; says: RegExp }): void {
    plant(planted.name, planted.text)
    try {
      const { code, output } = run(gate)
      assert.notEqual(code, 0, `${gate} let it through`)
      assert.match(output, planted.says)
    } finally {
      const before = sound[planted.name]
      if (before === undefined) rmSync(join(folder, planted.name))
      else plant(planted.name, before)
    }
  }

  test('a sound project passes every gate', () => {
    for (const gate of Object.keys(gates) as Gate[]) {
      const { code, output } = run(gate)
      assert.equal(code, 0, `${gate}: ${output}`)
    }
  })

  test('types: a number where a string is due', () => {
    closes('types', {
      name: 'src/cli/wrong.ts',
      text: 'export const name: string = 3\n',
      says: /wrong\.ts.*not assignable/s,
    })
  })

  test('types of the core: it cannot even name the process or the file system', () => {
    closes('types of the core', {
      name: 'src/core/impure.ts',
      text: 'export const argument: string = process.argv[0] ?? ""\n',
      says: /impure\.ts/,
    })
    closes('types of the core', {
      name: 'src/core/impure.ts',
      text: "import { readFileSync } from 'node:fs'\n\nexport const text: string = readFileSync('x', 'utf8')\n",
      says: /impure\.ts/,
    })
  })

  test('lint: clocks, chance and adapters stay out of the core, adapters out of the gateway', () => {
    const core = { name: 'src/core/impure.ts' }
    closes('lint', { ...core, text: 'export const now: number = Date.now()\n', says: /Date/ })
    closes('lint', {
      ...core,
      text: 'export const chance: number = Math.random()\n',
      says: /chance is an argument/,
    })
    closes('lint', {
      ...core,
      text: "export { main } from '../adapters/main.ts'\n",
      says: /core imports nothing from outside core/,
    })
    closes('lint', {
      name: 'src/gateway/reach.ts',
      text: "export { main } from '../adapters/main.ts'\n",
      says: /no-restricted-imports/,
    })
  })

  test('lint: a promise that nobody waits for, and a function too long to read', () => {
    closes('lint', {
      name: 'src/cli/floating.ts',
      text: 'export function start(): void {\n  Promise.resolve(1)\n}\n',
      says: /no-floating-promises/,
    })
    const lines = Array.from({ length: 95 }, (_, index) => `  total += ${index}\n`).join('')
    closes('lint', {
      name: 'src/cli/long.ts',
      text: `export function long(): number {\n  let total = 0\n${lines}  return total\n}\n`,
      says: /max-lines-per-function/,
    })
  })

  test('format: a line that the formatter would write otherwise', () => {
    closes('format', {
      name: 'src/cli/ugly.ts',
      text: 'export const   spaced = {a:1};\n',
      says: /ugly\.ts/,
    })
  })

  test('unused: a file that nobody imports, and an export that nobody uses', () => {
    closes('unused', {
      name: 'src/core/orphan.ts',
      text: 'export const alone: number = 1\n',
      says: /orphan\.ts/,
    })
    closes('unused', {
      name: 'src/core/add.ts',
      text: `${sound['src/core/add.ts'] ?? ''}\nexport function unwanted(): void {}\n`,
      says: /unwanted/,
    })
  })

  test('unit: a test that fails', () => {
    closes('unit', {
      name: 'src/core/wrong.test.ts',
      text: "import assert from 'node:assert/strict'\nimport { test } from 'node:test'\n\ntest('fails', () => {\n  assert.equal(1, 2)\n})\n",
      says: /1 passed, 1 failed/,
    })
  })
})
