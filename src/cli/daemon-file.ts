// The one daemon of a home folder: its lock, and how commands find it.
import { randomBytes } from 'node:crypto'
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { uptime } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { UserError } from './command.ts'

const daemonFile = z.object({
  pid: z.number().int(),
  host: z.string(),
  port: z.number().int(),
  token: z.string(),
  startedAt: z.string(),
  /** When the computer was started: a pid means nothing across that. */
  bootedAtMs: z.number(),
})

export type DaemonFile = z.infer<typeof daemonFile>

function pathIn(home: string): string {
  return join(home, 'run', 'daemon.json')
}

export function readDaemonFile(home: string): DaemonFile | null {
  try {
    const parsed = daemonFile.safeParse(JSON.parse(readFileSync(pathIn(home), 'utf8')))
    return parsed.success && isAlive(parsed.data) ? parsed.data : null
  } catch {
    return null
  }
}

/** Takes the lock or says who holds it. The file is made exclusively, so two starts cannot both win. */
export function takeDaemonFile(home: string, at: { host: string; port: number }): DaemonFile {
  const path = pathIn(home)
  const content: DaemonFile = {
    pid: process.pid,
    ...at,
    token: randomBytes(24).toString('hex'),
    startedAt: new Date().toISOString(),
    bootedAtMs: bootedAtMs(),
  }
  try {
    mkdirSync(join(home, 'run'), { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new UserError(
      `Cannot write to ${home}: ${reasonOf(error)}; set BUSHEL_HOME to a folder you may write to`,
    )
  }
  for (let attempt = 0; attempt < 2; attempt++) {
    const running = readDaemonFile(home)
    if (running !== null) {
      throw new UserError(
        `A daemon already runs for ${home} (pid ${running.pid}, port ${running.port}); stop it with "bushel stop" or set another BUSHEL_HOME`,
      )
    }
    if (attempt > 0) rmSync(path, { force: true })
    if (writeExclusively(path, JSON.stringify(content))) return content
  }
  throw new UserError(`Could not take the lock ${path}; is another daemon starting? Try again`)
}

function writeExclusively(path: string, text: string): boolean {
  let file: number
  try {
    file = openSync(path, 'wx', 0o600)
  } catch (error) {
    if ((error as { code?: string }).code === 'EEXIST') return false
    throw new UserError(`Cannot write ${path}: ${reasonOf(error)}`)
  }
  try {
    writeSync(file, text)
  } catch (error) {
    rmSync(path, { force: true })
    throw new UserError(`Cannot write ${path}: ${reasonOf(error)}`)
  } finally {
    closeSync(file)
  }
  return true
}

export function releaseDaemonFile(home: string): void {
  const held = readDaemonFile(home)
  if (held === null || held.pid === process.pid) rmSync(pathIn(home), { force: true })
}

/** Two readings of the same boot differ by rounding and clock corrections. */
const bootToleranceMs = 120_000

function bootedAtMs(): number {
  return Math.round(Date.now() - uptime() * 1000)
}

function isAlive({ pid, bootedAtMs: then }: DaemonFile): boolean {
  if (Math.abs(bootedAtMs() - then) > bootToleranceMs) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as { code?: string }).code === 'EPERM'
  }
}

function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string }
  const known: Record<string, string> = {
    EROFS: 'the disk is read-only',
    ENOSPC: 'the disk is full',
    EACCES: 'permission denied',
    EPERM: 'permission denied',
    ENOTDIR: 'a part of the path is a file',
  }
  return known[code ?? ''] ?? message ?? String(error)
}
