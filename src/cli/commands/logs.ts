// bushel logs: what the daemon and its ranks have written.
import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { type CliContext, UserError } from '../command.ts'
import { homeDir } from '../settings.ts'

const pollMs = 200

export function register(command: Command, context: CliContext): void {
  command
    .option('-f, --follow', 'go on as lines are written')
    .option('-n, --lines <n>', 'how many of the last lines', '50')
    .action(async (options: { follow?: boolean; lines: string; json?: boolean }) => {
      const file = join(homeDir(context.env), 'logs', 'daemon.log')
      if (!existsSync(file))
        throw new UserError(`There is no log yet at ${file}; start the daemon with "bushel up"`)
      const lines = readFileSync(file, 'utf8')
        .trimEnd()
        .split('\n')
        .slice(-Math.max(1, Number(options.lines) || 50))
      const show = (line: string): void =>
        context.out.result(options.json === true ? line : human(line))
      for (const line of lines) if (line !== '') show(line)
      if (options.follow === true) await follow(file, show)
    })
}

function human(line: string): string {
  try {
    const { time, level, msg, ...rest } = JSON.parse(line) as Record<string, unknown>
    const names: Record<string, string> = { 20: 'debug', 30: 'info', 40: 'WARN', 50: 'ERROR' }
    const about = Object.entries(rest).map(
      ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
    )
    return `${String(time)} ${(names[String(level)] ?? '').padEnd(5)} ${String(msg)} ${about.join(' ')}`.trimEnd()
  } catch {
    return line
  }
}

/** Follows by reading on; a rotated file starts again from its beginning. */
async function follow(file: string, show: (line: string) => void): Promise<never> {
  let position = statSync(file).size
  let held = ''
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, pollMs))
    const size = existsSync(file) ? statSync(file).size : 0
    if (size < position) position = 0
    if (size === position) continue
    const buffer = Buffer.alloc(size - position)
    const handle = openSync(file, 'r')
    readSync(handle, buffer, 0, buffer.length, position)
    closeSync(handle)
    position = size
    const lines = (held + buffer.toString('utf8')).split('\n')
    held = lines.pop() ?? ''
    for (const line of lines) show(line)
  }
}
