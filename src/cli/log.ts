// The daemon's log: JSON lines in a file that does not grow without end. Prompts never come here.
import { existsSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Logger, pino } from 'pino'

const fileBytesMax = 10_000_000
const filesKept = 3
const checkEveryMs = 60_000

export interface DaemonLog {
  readonly logger: Logger
  close(): void
}

export function openLog(home: string, level: string): DaemonLog {
  const folder = join(home, 'logs')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, 'daemon.log')
  rotate(file)
  const destination = pino.destination({ dest: file, sync: false, mkdir: true })
  const timer = setInterval(() => {
    if (rotate(file)) destination.reopen()
  }, checkEveryMs)
  timer.unref()
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination)
  return {
    logger,
    close() {
      clearInterval(timer)
      try {
        destination.flushSync()
      } catch {
        // the file was never opened: there is nothing to flush
      }
      destination.end()
    },
  }
}

/** daemon.log → daemon.log.1 → …; true when it was moved. */
function rotate(file: string): boolean {
  if (!existsSync(file) || statSync(file).size < fileBytesMax) return false
  rmSync(`${file}.${filesKept}`, { force: true })
  for (let index = filesKept - 1; index >= 1; index--) {
    if (existsSync(`${file}.${index}`)) renameSync(`${file}.${index}`, `${file}.${index + 1}`)
  }
  renameSync(file, `${file}.1`)
  return true
}
