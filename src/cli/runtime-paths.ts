// Where the prepared things lie: the launcher made them, everyone else only looks.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type CliContext, UserError } from './command.ts'

export interface RuntimePaths {
  readonly runtimeDir: string
  readonly python: string
  readonly workerDir: string
  readonly starterDir: string
  readonly pageDir: string
}

export function runtimePaths({
  env,
  programDir,
}: Pick<CliContext, 'env' | 'programDir'>): RuntimePaths {
  const runtimeDir = env['BUSHEL_RUNTIME'] ?? join(programDir, '.runtime')
  return {
    runtimeDir,
    python: env['BUSHEL_PYTHON'] ?? join(runtimeDir, 'python', 'bin', 'python'),
    workerDir: join(programDir, 'worker'),
    starterDir: join(runtimeDir, 'models'),
    pageDir: join(programDir, 'web', 'dist'),
  }
}

export function requirePython(paths: RuntimePaths): void {
  if (existsSync(paths.python)) return
  throw new UserError(`There is no Python at ${paths.python}; run "./bushel setup"`)
}

/** Without a real BLAS the CPU build of MLX is five times slower; MKL comes with the Python environment. */
export function rankEnv(paths: RuntimePaths): Record<string, string> {
  const env: Record<string, string> = {
    HF_HUB_OFFLINE: '1',
    TRANSFORMERS_OFFLINE: '1',
    TOKENIZERS_PARALLELISM: 'false',
    PYTHONDONTWRITEBYTECODE: '1',
    PYTHONUNBUFFERED: '1',
  }
  if (process.platform !== 'linux' || process.arch !== 'x64') return env
  const lib = join(paths.runtimeDir, 'python', 'lib')
  const mkl = existsSync(lib)
    ? readdirSync(lib).find((name) => name.startsWith('libmkl_rt.so'))
    : undefined
  if (mkl !== undefined) env['LD_PRELOAD'] = join(lib, mkl)
  const threads = process.env['BUSHEL_RANK_THREADS'] ?? process.env['MKL_NUM_THREADS']
  if (threads !== undefined) env['MKL_NUM_THREADS'] = threads
  return env
}
