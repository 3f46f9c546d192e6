// Benchmarks over several hosts run themselves again inside a box of network namespaces.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { programDir } from './paths.ts'

/** Returns inside the box; outside, it does not return. */
export function enterBox(script: string): void {
  if (process.env['BUSHEL_BOX'] === '1') return
  const again = [process.execPath, script, ...process.argv.slice(2)]
  const { status } = spawnSync(join(programDir, 'test/e2e/in-box.sh'), again, { stdio: 'inherit' })
  process.exit(status ?? 1)
}
