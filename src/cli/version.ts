import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export function readVersion(programDir: string): string {
  const manifest = JSON.parse(readFileSync(join(programDir, 'package.json'), 'utf8')) as {
    version: string
  }
  return manifest.version
}
