// Ranks that outlived their daemon. A rank ends by itself when its daemon's pipe closes; one that was stopped or
// hangs in the driver does not notice, and keeps its memory. Whoever holds the lock of a home may end them.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** The words by which a rank of this home is known in the process table. */
export function rankArguments(home: string): readonly string[] {
  return ['-m', 'bushel_worker', '--home', home]
}

/** Ends every rank and launched script that runs for this home, and tells which; none where processes cannot be listed. */
export async function endLeftRanks(home: string): Promise<readonly number[]> {
  const table = await processTable()
  const left = [...ranksIn(table, home), ...scriptsIn(table, home)]
  for (const pid of left) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It ended by itself meanwhile.
    }
  }
  return left
}

export function ranksIn(table: string, home: string): readonly number[] {
  const words = ` ${rankArguments(home).join(' ')}`
  return table.split('\n').flatMap((line) => {
    const pid = Number(/^\s*(\d+)\s/.exec(line)?.[1])
    return line.trimEnd().endsWith(words) && pid > 1 ? [pid] : []
  })
}

/** Launched scripts, and their keepers, are known by the folder they were copied into. */
export function scriptsIn(table: string, home: string): readonly number[] {
  const folder = ` ${home.replace(/\/$/, '')}/launches/`
  return table.split('\n').flatMap((line) => {
    const pid = Number(/^\s*(\d+)\s/.exec(line)?.[1])
    return line.includes(folder) && pid > 1 ? [pid] : []
  })
}

async function processTable(): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)('ps', ['-axww', '-o', 'pid=,command='], {
      maxBuffer: 64 * 1024 * 1024,
    })
    return stdout
  } catch {
    return ''
  }
}
