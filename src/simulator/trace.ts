// Everything that happens in a run, as a hash and, when asked for, as lines. Two runs of one seed are
// the same run exactly when their hashes are.

export class Trace {
  #low = 0x811c9dc5
  #high = 0x9e3779b9
  #events = 0
  readonly #print: ((line: string) => void) | null

  constructor(print: ((line: string) => void) | null) {
    this.#print = print
  }

  get events(): number {
    return this.#events
  }

  get hash(): string {
    const hex = (part: number): string => (part >>> 0).toString(16).padStart(8, '0')
    return hex(this.#high) + hex(this.#low)
  }

  /** A thing that happened, told in words. */
  tell(atMs: number, who: string, what: string, about = ''): void {
    this.beat(atMs, 1, who.length)
    this.#words(who)
    this.#words(what)
    this.#words(about)
    if (this.#print === null) return
    this.#print(`${(atMs / 1000).toFixed(3).padStart(9)}  ${who.padEnd(5)} ${what} ${about}`)
  }

  /** A beat on the wire: far too many for words. */
  beat(atMs: number, from: number, to: number): void {
    this.#events += 1
    this.#mix(Math.floor(atMs * 1000) | 0)
    this.#mix(from * 65_537 + to)
  }

  #words(text: string): void {
    for (let index = 0; index < text.length; index++) this.#mix(text.charCodeAt(index))
    this.#mix(-1)
  }

  #mix(value: number): void {
    this.#low = Math.imul(this.#low ^ value, 0x01000193)
    this.#high = Math.imul(this.#high ^ value, 0x85ebca6b)
    this.#high = (this.#high << 13) | (this.#high >>> 19)
  }
}
