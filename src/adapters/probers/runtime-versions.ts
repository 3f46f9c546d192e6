// Which Python, MLX and mlx-lm this machine would run, asked of that very Python.
import { type Fact, chainFact, known, unknown } from '../../core/machine-facts/fact.ts'
import { probeLimits } from '../../core/machine-facts/limits.ts'
import type { RuntimeVersions } from '../../core/machine-facts/machine.ts'
import type { RunCommand } from '../../ports/machine-access.ts'
import { textOf } from './outcome.ts'
import { asArray, asObject, parseJson } from './text.ts'

/** Only what is compiled in is asked for: no group is formed and no device is opened. */
const script = [
  'import importlib.metadata as m, json, platform',
  'import mlx.core as mx',
  "names = ['ring', 'jaccl', 'nccl', 'mpi']",
  "print(json.dumps({'python': platform.python_version(), 'mlx': m.version('mlx'), 'mlxLm': m.version('mlx-lm'), 'backends': [n for n in names if mx.distributed.is_available(n)]}))",
].join('\n')

export function runtimeCommand(python: string): readonly string[] {
  return [python, '-I', '-c', script]
}

export async function probeRuntime(
  runCommand: RunCommand,
  python: string | null,
): Promise<Fact<RuntimeVersions>> {
  if (python === null)
    return unknown('tool-missing', 'no Python runtime of Bushel is installed here')
  const outcome = await runCommand(runtimeCommand(python), {
    timeoutMs: probeLimits.runtimeTimeoutMs,
  })
  return chainFact(textOf('the Python runtime', outcome), parseRuntimeVersions)
}

export function parseRuntimeVersions(text: string): Fact<RuntimeVersions> {
  return chainFact(parseJson('the Python runtime', text), (json) => {
    const versions = asObject(json) ?? {}
    const backends = asArray(versions['backends'])?.filter((name) => typeof name === 'string')
    const { python, mlx, mlxLm } = versions
    if (typeof python !== 'string' || typeof mlx !== 'string' || typeof mlxLm !== 'string')
      return unknown('not-understood', 'the Python runtime did not list its versions')
    if (backends === undefined)
      return unknown('not-understood', 'the Python runtime did not list its backends')
    return known({ python, mlx, mlxLm, backends })
  })
}
