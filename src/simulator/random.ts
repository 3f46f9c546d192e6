// Chance from one seed. Every part of a run draws from its own stream, so that a change in one (a
// planted bug, say) leaves the faults of the others where they were.

export class Random {
  #a: number
  #b: number
  #c: number
  #d: number
  readonly #seed: number

  constructor(seed: number, label: string) {
    this.#seed = seed
    let hash = 0x9e3779b9 ^ seed
    for (let index = 0; index < label.length; index++)
      hash = Math.imul(hash ^ label.charCodeAt(index), 0x01000193) ^ (hash >>> 15)
    this.#a = hash | 0
    this.#b = Math.imul(hash, 0x85ebca6b) ^ seed
    this.#c = Math.imul(seed | 1, 0xc2b2ae35)
    this.#d = 1
    for (let round = 0; round < 12; round++) this.#next32()
  }

  /** Another stream of the same seed. */
  stream(label: string): Random {
    return new Random(this.#seed, label)
  }

  /** 0 ≤ x < 1. */
  fraction(): number {
    return this.#next32() / 0x1_0000_0000
  }

  between(least: number, most: number): number {
    return least + this.fraction() * (most - least)
  }

  /** A whole number from least to most, both included. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1))
  }

  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  pick<Item>(items: readonly Item[]): Item | undefined {
    return items[Math.floor(this.fraction() * items.length)]
  }

  shuffled<Item>(items: readonly Item[]): Item[] {
    const mixed = [...items]
    for (let index = mixed.length - 1; index > 0; index--) {
      const other = Math.floor(this.fraction() * (index + 1))
      const kept = mixed[index] as Item
      mixed[index] = mixed[other] as Item
      mixed[other] = kept
    }
    return mixed
  }

  hex(bytes: number): string {
    let text = ''
    while (text.length < bytes * 2) text += this.#next32().toString(16).padStart(8, '0')
    return text.slice(0, bytes * 2)
  }

  /** Small fast counter generator (sfc32): 128 bits of state, passes the usual batteries. */
  #next32(): number {
    const sum = (this.#a + this.#b + this.#d) | 0
    this.#d = (this.#d + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (this.#c << 21) | (this.#c >>> 11)
    this.#c = (this.#c + sum) | 0
    return sum >>> 0
  }
}
