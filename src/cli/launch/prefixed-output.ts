// Output of several ranks on one stream: every line says whose it is, and no two lines are mixed. Bytes are
// passed on as they are, so no character is ever cut.

const newline = 0x0a
/** A line longer than this is passed on in parts. */
const heldBytesMax = 65_536

export class PrefixedOutput {
  readonly #write: (data: Buffer) => void
  readonly #prefix: (rank: number) => string
  readonly #held = new Map<number, Buffer>()
  /** Whose unfinished line the cursor stands in. */
  #open: number | null = null

  constructor(prefix: (rank: number) => string, write: (data: Buffer) => void) {
    this.#prefix = prefix
    this.#write = write
  }

  push(rank: number, data: Buffer): void {
    const all = Buffer.concat([this.#held.get(rank) ?? Buffer.alloc(0), data])
    const end = all.lastIndexOf(newline) + 1
    const lines = all.subarray(0, end)
    const rest = all.subarray(end)
    this.#held.set(rank, rest)
    for (let at = 0; at < lines.length;) {
      const next = lines.indexOf(newline, at) + 1
      this.#print(rank, lines.subarray(at, next))
      at = next
    }
    if (rest.length > heldBytesMax) this.#flushRank(rank)
  }

  /** Called when nothing came for a moment: a question without a line's end is meant to be seen. */
  flush(): void {
    for (const [rank, rest] of this.#held) if (rest.length > 0) this.#flushRank(rank)
  }

  /** The last lines may have no end. */
  finish(): void {
    this.flush()
    if (this.#open !== null) this.#write(Buffer.from('\n'))
    this.#open = null
  }

  #flushRank(rank: number): void {
    const rest = this.#held.get(rank)
    this.#held.set(rank, Buffer.alloc(0))
    if (rest !== undefined) this.#print(rank, rest)
  }

  #print(rank: number, data: Buffer): void {
    const goesOn = this.#open === rank
    if (this.#open !== null && !goesOn) this.#write(Buffer.from('\n'))
    this.#write(goesOn ? data : Buffer.concat([Buffer.from(this.#prefix(rank)), data]))
    this.#open = data.at(-1) === newline ? null : rank
  }
}
