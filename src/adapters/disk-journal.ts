// The journal as one file that is replaced whole, with the snapshot before it kept beside it.
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Journal, JournalSnapshot } from '../ports/journal.ts'
import { type JournalContent, parseJournal, renderJournal } from '../wire/journal-file.ts'
import { writeFileAtomically } from '../files/atomic-file.ts'

export class JournalUnusableError extends Error {
  override readonly name = 'JournalUnusableError'
}

export interface LoadedJournal {
  readonly content: JournalContent | null
  /** What a person should know about how it was read. */
  readonly warning: string | null
}

export class DiskJournal implements Journal {
  readonly #file: string
  readonly #previous: string

  constructor(folder: string) {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    this.#file = join(folder, 'journal.json')
    this.#previous = join(folder, 'journal.previous.json')
  }

  /** Reads the newest snapshot that can be read. A broken file is set aside, never overwritten. */
  load(): LoadedJournal {
    if (!existsSync(this.#file)) return { content: null, warning: null }
    const parsed = parseJournal(readFileSync(this.#file, 'utf8'))
    if (parsed.kind === 'read') return { content: parsed.content, warning: null }
    if (parsed.kind === 'newer-format') {
      throw new JournalUnusableError(
        `Cannot read ${this.#file}: a newer Bushel wrote it (format ${parsed.format}); update this one, or move the file away to start afresh`,
      )
    }
    const aside = `${this.#file}.broken-${Date.now()}`
    copyFileSync(this.#file, aside)
    const older = existsSync(this.#previous)
      ? parseJournal(readFileSync(this.#previous, 'utf8'))
      : null
    const fallback = older?.kind === 'read' ? older.content : null
    // From now on this is the journal: a machine that dies before its next write must not forget its cluster.
    if (fallback === null) rmSync(this.#file)
    else this.#restorePrevious()
    const what =
      fallback === null ? 'starting without desired state' : 'the snapshot before it is used'
    const first = parsed.reason.split('\n')[0] ?? ''
    return {
      content: fallback,
      warning: `The journal could not be read (${first}); it was kept as ${aside} and ${what}`,
    }
  }

  save(snapshot: JournalSnapshot, settled: (error: Error | null) => void): void {
    this.#write(snapshot).then(
      () => settled(null),
      (error: unknown) => settled(error instanceof Error ? error : new Error(String(error))),
    )
  }

  #restorePrevious(): void {
    const temporary = `${this.#file}.restored.tmp`
    copyFileSync(this.#previous, temporary)
    renameSync(temporary, this.#file)
  }

  async #write(snapshot: JournalSnapshot): Promise<void> {
    if (existsSync(this.#file)) copyFileSync(this.#file, this.#previous)
    await writeFileAtomically(this.#file, renderJournal(snapshot), { mode: 0o600 })
  }
}
