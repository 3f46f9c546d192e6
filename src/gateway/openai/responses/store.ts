// Responses that may be asked for again or continued. They live in the memory of the machine that gave
// them, for as long as there is room, and are seen only by the key that asked.
import { limits } from '../../../core/limits.ts'
import type { ResponseObject } from './response-object.ts'
import type { Item } from './request.ts'

interface Stored {
  readonly scope: string
  readonly response: ResponseObject
  /** The whole conversation before the answer. */
  readonly input: readonly Item[]
  readonly bytes: number
}

export class ResponseStore {
  /** In the order of last use. */
  readonly #stored = new Map<string, Stored>()
  #bytes = 0

  /** `added` are the items that this request brought; what came before is already counted. */
  put(
    response: ResponseObject,
    about: { scope: string; input: readonly Item[]; added: readonly Item[] },
  ): void {
    this.#drop(response.id)
    const { scope, input, added } = about
    const bytes = JSON.stringify(response).length + JSON.stringify(added).length
    this.#stored.set(response.id, { scope, response, input, bytes })
    this.#bytes += bytes
    for (const oldest of this.#stored.keys()) {
      const isFull =
        this.#bytes > limits.storedResponsesBytesMax ||
        this.#stored.size > limits.storedResponsesMax
      if (!isFull) return
      this.#drop(oldest)
    }
  }

  get(id: string, scope: string): Stored | null {
    const stored = this.#stored.get(id)
    if (stored === undefined || stored.scope !== scope) return null
    this.#stored.delete(id)
    this.#stored.set(id, stored)
    return stored
  }

  remove(id: string, scope: string): boolean {
    if (this.get(id, scope) === null) return false
    this.#drop(id)
    return true
  }

  /** An item of any response of this key, for requests that only name it. */
  item(id: string, scope: string): Item | null {
    for (const stored of this.#stored.values()) {
      if (stored.scope !== scope) continue
      const own = stored.response.output.find((item) => item.id === id)
      const found = own ?? stored.input.find((item) => item.id === id)
      if (found !== undefined) return found
    }
    return null
  }

  get size(): number {
    return this.#stored.size
  }

  #drop(id: string): void {
    const stored = this.#stored.get(id)
    if (stored === undefined) return
    this.#stored.delete(id)
    this.#bytes -= stored.bytes
  }
}
