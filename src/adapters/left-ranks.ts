// Ranks that outlived their daemon. A rank ends by itself when its daemon's pipe closes; one that was stopped or
// hangs in the driver does not notice, and keeps its memory. The next daemon of the same machine ends it; there is
// one at a time, so whatever it finds at its start is nobody's.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { MachineId } from '../core/ids.ts'

/** The words by which a rank of this machine is known in the process table. Containers may share one. */
export function rankArguments(machine: MachineId): readonly string[] {
  return ['-m', 'bushel_worker', '--machine', machine]
}

/** Ends every rank and launched script of this machine, and tells which; none where processes cannot be listed. */
export async function endLeftRanks(machine: MachineId): Promise<readonly number[]> {
  const table = await processTable()
  const left = [...ranksIn(table, machine), ...scriptsIn(table, machine)]
  for (const pid of left) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It ended by itself meanwhile.
    }
  }
  return left
}

export function ranksIn(table: string, machine: MachineId): readonly number[] {
  const words = ` ${rankArguments(machine).join(' ')}`
  return pidsOf(table, (line) => line.trimEnd().endsWith(words))
}

/** Launched scripts, and their keepers, are known by the folder they were copied into. */
function scriptsIn(table: string, machine: MachineId): readonly number[] {
  return pidsOf(table, (line) => line.includes(`/launches/${machine}-`))
}

function pidsOf(table: string, isOurs: (line: string) => boolean): readonly number[] {
  return table.split('\n').flatMap((line) => {
    const pid = Number(/^\s*(\d+)\s/.exec(line)?.[1])
    return pid > 1 && isOurs(line) ? [pid] : []
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
