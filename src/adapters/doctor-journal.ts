// The doctor's own record on disk. An entry is written before the change it describes, so that even a
// change cut short can be taken back.
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type DoctorChange, doctorChanges } from '../wire/doctor-changes.ts'

export interface DoctorJournal {
  readonly path: string
  list(): Promise<readonly DoctorChange[]>
  /** Adds the entry, or replaces the one with the same id. */
  put(change: DoctorChange): Promise<void>
}

export class DoctorJournalError extends Error {
  override readonly name = 'DoctorJournalError'
}

export function createDoctorJournal(path: string): DoctorJournal {
  const list = async (): Promise<readonly DoctorChange[]> => {
    let text: string
    try {
      text = await readFile(path, 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw new DoctorJournalError(`Cannot read "${path}": ${(error as Error).message}`)
    }
    const parsed = doctorChanges.safeParse(jsonOrNull(text))
    if (!parsed.success)
      throw new DoctorJournalError(
        `"${path}" is not a record of changes; move it away to go on, and look into it for what was changed`,
      )
    return parsed.data.changes
  }
  return {
    path,
    list,
    put: async (change) => {
      const others = (await list()).filter((one) => one.id !== change.id)
      const changes = [...others, change].toSorted((a, b) => a.atMs - b.atMs)
      await mkdir(dirname(path), { recursive: true })
      const draft = `${path}.new`
      await writeFile(draft, `${JSON.stringify({ version: 1, changes }, null, 2)}\n`, {
        mode: 0o600,
      })
      await rename(draft, path)
    },
  }
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
