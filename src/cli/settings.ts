// Settings from flags, then the environment, then config.toml, then defaults.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { homedir, hostname, totalmem } from 'node:os'
import { join, resolve } from 'node:path'
import { parse as parseToml } from 'smol-toml'
import { z } from 'zod'
import type { Role } from '../core/cluster/record.ts'
import { formatBytes, parseBytes, parseDurationMs } from '../core/units.ts'
import { type ConfigFile, configFile } from '../wire/config-file.ts'
import { type CliContext, UserError, exitCodes } from './command.ts'

export const defaultPort = 28743

export interface Settings {
  readonly home: string
  readonly name: string
  /** The name was chosen by a person, not taken from the host. */
  readonly nameGiven: boolean
  readonly port: number
  readonly listen: string
  readonly role: Role
  readonly memoryLendBytes: number
  readonly model: string | null
  readonly apiKey: string | null
  readonly allowedHosts: readonly string[]
  readonly logLevel: string
  readonly peers: readonly string[]
  readonly discovery: boolean
  readonly allowLaunch: boolean
  /** Whether macmon may be asked for power and heat. */
  readonly macmon: boolean
  /** Whether links are measured when they come up. */
  readonly measureLinks: boolean
  /** Of models that requests load; null keeps them. */
  readonly keepAliveMs: number | null
  readonly ollamaPort: number | null
  readonly links: NonNullable<ConfigFile['links']>
}

export interface SettingFlags {
  readonly name?: string
  readonly port?: string
  readonly listen?: string
  readonly role?: string
  readonly memory?: string
  readonly model?: string
  readonly peer?: readonly string[]
  readonly discovery?: string
  readonly ollama?: string | boolean
}

type Env = CliContext['env']

export function homeDir(env: Env): string {
  const home = env['BUSHEL_HOME']
  if (home !== undefined && home !== '') return resolve(home)
  const user = env['HOME'] ?? homedir()
  if (user === '')
    throw new UserError('HOME is not set; set BUSHEL_HOME to a folder for Bushel’s state')
  return join(user, '.bushel')
}

export function loadSettings(flags: SettingFlags, env: Env): Settings {
  const home = homeDir(env)
  const file = readConfig(join(home, 'config.toml'))
  const first = (name: string, ...values: (string | undefined)[]): string | undefined =>
    values.find((value) => value !== undefined && value !== '') ?? env[`BUSHEL_${name}`]
  return {
    home,
    name: machineName(first('NAME', flags.name) ?? file.name ?? hostname()),
    nameGiven: (first('NAME', flags.name) ?? file.name) !== undefined,
    port: portOf(first('PORT', flags.port) ?? file.port),
    listen: first('LISTEN', flags.listen) ?? file.listen ?? '127.0.0.1',
    role: roleOf(first('ROLE', flags.role) ?? file.role ?? 'always'),
    memoryLendBytes: memoryOf(first('MEMORY', flags.memory) ?? file.memory),
    model: first('MODEL', flags.model) ?? file.model ?? null,
    apiKey: env['BUSHEL_API_KEY'] ?? file.api_key ?? null,
    allowedHosts: file.allowed_hosts ?? [],
    logLevel: env['BUSHEL_LOG_LEVEL'] ?? file.log_level ?? 'info',
    peers: flags.peer ?? env['BUSHEL_PEERS']?.split(',').filter(Boolean) ?? file.peers ?? [],
    discovery: (first('DISCOVERY', flags.discovery) ?? file.discovery ?? 'on') !== 'off',
    allowLaunch: file.allow_launch ?? false,
    macmon: file.macmon ?? false,
    measureLinks: (env['BUSHEL_MEASURE_LINKS'] ?? file.measure_links ?? 'on') !== 'off',
    keepAliveMs: keepAliveOf(env['BUSHEL_KEEP_ALIVE'] ?? file.keep_alive ?? '30m'),
    ollamaPort: ollamaPortOf(flags.ollama ?? env['BUSHEL_OLLAMA_PORT'] ?? file.ollama_port),
    links: file.links ?? {},
  }
}

function readConfig(path: string): ConfigFile {
  if (!existsSync(path)) return {}
  if (statSync(path).isDirectory()) throw usage(`${path} is a folder; it should be a file`)
  let table: unknown
  try {
    table = parseToml(readFileSync(path, 'utf8'))
  } catch (error) {
    throw usage(`${path} is not valid TOML: ${(error as Error).message.split('\n')[0] ?? ''}`)
  }
  const parsed = configFile.safeParse(table)
  if (!parsed.success)
    throw usage(`${path}: ${z.prettifyError(parsed.error).replaceAll('\n', ' ')}`)
  return parsed.data
}

function usage(message: string): UserError {
  return new UserError(message, { exitCode: exitCodes.usage })
}

/** Names are typed by people and shown in tables: short, and without surprises. */
function machineName(text: string): string {
  const name =
    text
      .split('.')[0]
      ?.toLowerCase()
      .replaceAll(/[^a-z0-9-]+/g, '-')
      .replaceAll(/^-+|-+$/g, '') ?? ''
  return name === '' ? 'machine' : name.slice(0, 40)
}

export function portOf(value: string | number | undefined): number {
  if (value === undefined) return defaultPort
  const port = Number(value)
  // Peers listen on the next port, so the last one cannot be ours.
  if (!Number.isInteger(port) || port < 1 || port > 65534) {
    throw usage(`"${value}" is no port; give a number from 1 to 65534`)
  }
  return port
}

const ollamaPortDefault = 11_434

function ollamaPortOf(value: string | number | boolean | undefined): number | null {
  if (value === undefined || value === '' || value === false) return null
  if (value === true) return ollamaPortDefault
  const port = Number(value)
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port
  throw usage(`"${value}" is no port for Ollama's clients; give a number from 1 to 65535`)
}

function keepAliveOf(text: string): number | null {
  const ms = parseDurationMs(text)
  if (ms === null) throw usage(`"${text}" is no time to keep a model; write it like 30m, or -1`)
  return ms < 0 ? null : ms
}

function roleOf(value: string): Role {
  if (value === 'always' || value === 'sometimes' || value === 'client') return value
  throw usage(`"${value}" is no role; choose always, sometimes or client`)
}

/** Leaves the person a quarter of the machine unless told otherwise. */
const lendShare = 0.75

function memoryOf(value: string | undefined): number {
  const constrained = process.constrainedMemory()
  const total = constrained > 0 ? Math.min(totalmem(), constrained) : totalmem()
  if (value === undefined) return Math.floor(total * lendShare)
  const bytes = parseBytes(value)
  if (bytes === null || bytes <= 0) throw usage(`"${value}" is no size; write it like 4GB`)
  if (bytes > total) throw usage(`This machine has ${formatBytes(total)}; it cannot lend ${value}`)
  return bytes
}
