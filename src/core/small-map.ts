// A map of a handful of entries that is copied far more often than it is searched: the peers of a machine,
// of which each beat changes one. Changing one entry copies one short array and shares the rest.

export class SmallMap<Key, Value> implements ReadonlyMap<Key, Value> {
  readonly #keys: readonly Key[]
  readonly #values: readonly Value[]

  private constructor(keys: readonly Key[], values: readonly Value[]) {
    this.#keys = keys
    this.#values = values
  }

  static of<Key, Value>(entries: Iterable<readonly [Key, Value]> = []): SmallMap<Key, Value> {
    const keys: Key[] = []
    const values: Value[] = []
    for (const [key, value] of entries) {
      keys.push(key)
      values.push(value)
    }
    return new SmallMap(keys, values)
  }

  get size(): number {
    return this.#keys.length
  }

  get(key: Key): Value | undefined {
    return this.#values[this.#keys.indexOf(key)]
  }

  has(key: Key): boolean {
    return this.#keys.includes(key)
  }

  /** The same map with this entry; the one it was called on stays as it is. */
  with(key: Key, value: Value): SmallMap<Key, Value> {
    const index = this.#keys.indexOf(key)
    if (index === -1) return new SmallMap([...this.#keys, key], [...this.#values, value])
    const values = this.#values.slice()
    values[index] = value
    return new SmallMap(this.#keys, values)
  }

  without(key: Key): SmallMap<Key, Value> {
    const index = this.#keys.indexOf(key)
    if (index === -1) return this
    return new SmallMap(this.#keys.toSpliced(index, 1), this.#values.toSpliced(index, 1))
  }

  map<Other>(change: (value: Value, key: Key) => Other): SmallMap<Key, Other> {
    const changed = this.#values.map((value, index) => change(value, this.#keys[index] as Key))
    return new SmallMap(this.#keys, changed)
  }

  forEach(run: (value: Value, key: Key, map: ReadonlyMap<Key, Value>) => void): void {
    for (const [index, key] of this.#keys.entries()) run(this.#values[index] as Value, key, this)
  }

  keys(): MapIterator<Key> {
    return this.#keys.values()
  }

  values(): MapIterator<Value> {
    return this.#values.values()
  }

  *entries(): MapIterator<[Key, Value]> {
    for (const [index, key] of this.#keys.entries()) yield [key, this.#values[index] as Value]
  }

  [Symbol.iterator](): MapIterator<[Key, Value]> {
    return this.entries()
  }
}
