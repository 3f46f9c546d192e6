// Length-prefixed frames: four bytes of length, then that many bytes. A length beyond the limit ends the
// connection before a byte of it is kept.

export class FrameTooLargeError extends Error {
  override readonly name = 'FrameTooLargeError'
}

const prefixBytes = 4

export function encodeFrame(value: unknown): Buffer {
  const body = Buffer.from(JSON.stringify(value), 'utf8')
  const frame = Buffer.allocUnsafe(prefixBytes + body.length)
  frame.writeUInt32BE(body.length, 0)
  body.copy(frame, prefixBytes)
  return frame
}

export class FrameReader {
  /** May grow once the other side has shown who it is. */
  bytesMax: number
  #chunks: Buffer[] = []
  #bytes = 0

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  /** Whole frames that this chunk completes. */
  push(chunk: Buffer): Buffer[] {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    const frames: Buffer[] = []
    for (let frame = this.#next(); frame !== null; frame = this.#next()) frames.push(frame)
    return frames
  }

  /** Bytes that have come but belong to no whole frame yet: what a raw stream starts with. */
  takeRest(): Buffer {
    const rest = Buffer.concat(this.#chunks)
    this.#chunks = []
    this.#bytes = 0
    return rest
  }

  #next(): Buffer | null {
    if (this.#bytes < prefixBytes) return null
    const first = this.#gather(prefixBytes)
    const length = first.readUInt32BE(0)
    if (length > this.bytesMax) {
      throw new FrameTooLargeError(
        `a frame of ${length} bytes was announced; ${this.bytesMax} are allowed`,
      )
    }
    if (this.#bytes < prefixBytes + length) return null
    const whole = this.#gather(prefixBytes + length)
    const frame = whole.subarray(prefixBytes, prefixBytes + length)
    this.#drop(prefixBytes + length)
    return frame
  }

  /** The first chunk, made at least this long. */
  #gather(bytes: number): Buffer {
    const [first] = this.#chunks
    if (first !== undefined && first.length >= bytes) return first
    const joined = Buffer.concat(this.#chunks)
    this.#chunks = [joined]
    return joined
  }

  #drop(bytes: number): void {
    this.#bytes -= bytes
    const [first, ...rest] = this.#chunks
    if (first === undefined) return
    this.#chunks = first.length > bytes ? [first.subarray(bytes), ...rest] : rest
  }
}
