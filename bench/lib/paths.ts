// Where the program and its Python lie, and how Python is run for measurements.
import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'

export const programDir: string = resolve(import.meta.dirname, '..', '..')
const runtimeDir = process.env['BUSHEL_RUNTIME'] ?? join(programDir, '.runtime')
export const pythonPath: string = join(runtimeDir, 'python', 'bin', 'python')
export const starterDir: string = join(runtimeDir, 'models', 'SmolLM2-135M-Instruct')

/** The same BLAS and the same number of threads as a rank gets. */
export function pythonEnv(threads: number): NodeJS.ProcessEnv {
  const lib = join(runtimeDir, 'python', 'lib')
  const mkl = readdirSync(lib).find((name) => name.startsWith('libmkl_rt.so'))
  return {
    ...process.env,
    PYTHONPATH: join(programDir, 'worker'),
    HF_HUB_OFFLINE: '1',
    MKL_NUM_THREADS: String(threads),
    ...(mkl === undefined ? {} : { LD_PRELOAD: join(lib, mkl) }),
  }
}
