// A machine's disk as the journal sees it: snapshots replaced whole, and everything that can go wrong.
import type { Journal, JournalSnapshot } from '../ports/journal.ts'
import { type JournalContent, parseJournal, renderJournal } from '../wire/journal-file.ts'
import type { Random } from './random.ts'
import type { Farewell } from './roster.ts'

interface Backup {
  readonly atMs: number
  readonly text: string
}

/** A write takes this long; a crash may come in the middle of it. */
const writeMsMin = 1
const writeMsMax = 25
const backupsKept = 40

export interface DiskPorts {
  readonly nowMs: () => number
  readonly random: Random
  /** A timer of the daemon: it does not fire once that life is over. */
  readonly after: (ms: number, run: () => void) => void
}

export class SimDisk {
  current: string | null = null
  /** The newest file or an older one was tampered with since the daemon last read it. */
  isTampered = false
  /** How often that has happened. */
  tampers = 0
  #previous: string | null = null
  #inFlight: string | null = null
  readonly #parsed = new Map<string, JournalContent | null>()
  readonly backups: Backup[] = []
  /** Every text that was ever written whole. */
  readonly written = new Set<string>()
  isFull = false
  /** The word that this machine left a cluster, kept for members that were away when it went. */
  farewell: Farewell | null = null

  journal(ports: DiskPorts, saved: (text: string) => void): Journal {
    return {
      save: (snapshot, done) => {
        const text = renderJournal(snapshot)
        const ms = ports.random.between(writeMsMin, writeMsMax)
        if (this.isFull) {
          ports.after(ms, () => done(new Error('no space left on device')))
          return
        }
        this.#inFlight = text
        ports.after(ms, () => {
          if (this.isFull) {
            done(new Error('no space left on device'))
            return
          }
          this.#replace(text, ports.nowMs())
          saved(text)
          done(null)
        })
      },
    }
  }

  /** The disk a machine has on its first day. */
  format(snapshot: JournalSnapshot): void {
    this.#replace(renderJournal(snapshot), 0)
  }

  /** The daemon or the power went: a write under way happened or did not. */
  crash(random: Random): void {
    if (this.#inFlight !== null && random.chance(0.5)) this.#replace(this.#inFlight, 0)
    this.#inFlight = null
  }

  /** The newest file lost its tail, whatever was promised about it. */
  truncate(random: Random): void {
    if (this.current === null) return
    this.#tamper()
    this.current = this.current.slice(0, Math.floor(random.fraction() * this.current.length))
  }

  /** Somebody put an old copy of the disk back. */
  restore(backup: Backup): void {
    this.#tamper()
    this.current = backup.text
    this.#previous = null
  }

  lose(): void {
    this.#tamper()
    this.farewell = null
    this.current = null
    this.#previous = null
  }

  #tamper(): void {
    this.isTampered = true
    this.tampers += 1
  }

  /** What a daemon reads when it starts: the newest snapshot that can be read. A broken one is set aside. */
  load(): JournalContent | null {
    if (this.#read(this.current) === null) this.current = null
    return this.peek()
  }

  peek(): JournalContent | null {
    return this.#read(this.current) ?? this.#read(this.#previous)
  }

  /** The file it would start from. */
  get readable(): string | null {
    return [this.current, this.#previous].find((text) => this.#read(text) !== null) ?? null
  }

  /** Reading is slow and asked for often; the same text says the same. */
  #read(text: string | null): JournalContent | null {
    if (text === null) return null
    const known = this.#parsed.get(text)
    if (known !== undefined) return known
    const parsed = parseJournal(text)
    const content = parsed.kind === 'read' ? parsed.content : null
    if (this.#parsed.size > 4) this.#parsed.clear()
    this.#parsed.set(text, content)
    return content
  }

  #replace(text: string, atMs: number): void {
    if (this.current !== null) this.#previous = this.current
    this.current = text
    this.#inFlight = null
    this.written.add(text.trim())
    this.backups.push({ atMs, text })
    if (this.backups.length > backupsKept) this.backups.shift()
  }
}
