// Where Bushel keeps what is its own on this machine, and where its daemon answers.
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'smol-toml'
import type { CliContext } from './command.ts'

type Env = CliContext['env']

const portDefault = 28_743

export function bushelHome(env: Env): string {
  const named = env['BUSHEL_HOME']
  return named === undefined || named === '' ? join(homedir(), '.bushel') : named
}

/** The daemon's address on this machine: $BUSHEL_PORT, then the port in config.toml, then 28743. */
export function daemonUrl(env: Env): string {
  const port = portFrom(env['BUSHEL_PORT']) ?? portFrom(configuredPort(env)) ?? portDefault
  return `http://127.0.0.1:${port}`
}

function configuredPort(env: Env): unknown {
  try {
    return parse(readFileSync(join(bushelHome(env), 'config.toml'), 'utf8'))['port']
  } catch {
    // Without a readable configuration the daemon, too, takes the default.
    return undefined
  }
}

function portFrom(value: unknown): number | null {
  const port = typeof value === 'string' || typeof value === 'number' ? Number(value) : Number.NaN
  return Number.isInteger(port) && port > 0 && port < 65_536 ? port : null
}
