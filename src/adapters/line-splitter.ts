// Bytes in, whole lines out. Decoding waits for the line, so no character is ever cut.

export class LineTooLongError extends Error {
  override readonly name = 'LineTooLongError'
}

const newline = 0x0a

export class LineSplitter {
  readonly #bytesMax: number
  #held: Buffer[] = []
  #heldBytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  push(chunk: Buffer): string[] {
    const lines: string[] = []
    let start = 0
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      const piece = chunk.subarray(start, end)
      lines.push(this.#held.length === 0 ? piece.toString('utf8') : this.#join(piece))
      start = end + 1
    }
    if (start < chunk.length) this.#hold(chunk.subarray(start))
    return lines
  }

  #join(last: Buffer): string {
    const line = Buffer.concat([...this.#held, last]).toString('utf8')
    this.#held = []
    this.#heldBytes = 0
    return line
  }

  #hold(rest: Buffer): void {
    this.#heldBytes += rest.length
    if (this.#heldBytes > this.#bytesMax) {
      throw new LineTooLongError(`a line of more than ${this.#bytesMax} bytes came without an end`)
    }
    this.#held.push(rest)
  }
}
