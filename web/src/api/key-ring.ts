// The API key of this browser tab: kept for the session, asked for when the server wants one.

export interface KeyState {
  readonly key: string | null
  /** The question for a key is on the screen. */
  readonly isAsking: boolean
  /** The key that is held was refused. */
  readonly isRejected: boolean
}

const storageKey = 'bushel.api-key'

export class KeyRing {
  readonly #storage: Pick<Storage, 'getItem' | 'setItem'>
  readonly #listeners = new Set<() => void>()
  /** A person who closed the question is not asked again until they want to be. */
  #isDismissed = false
  #state: KeyState

  constructor(storage: Pick<Storage, 'getItem' | 'setItem'>) {
    this.#storage = storage
    this.#state = { key: storage.getItem(storageKey), isAsking: false, isRejected: false }
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly getState = (): KeyState => this.#state

  /** The server answered 401. */
  readonly refuse = (keySent: string | null): void => {
    // An answer to a request that was sent before the key was changed says nothing about the new one.
    if (keySent !== this.#state.key) return
    this.#set({ isRejected: keySent !== null, isAsking: !this.#isDismissed })
  }

  ask(): void {
    this.#set({ isAsking: true })
  }

  dismiss(): void {
    this.#isDismissed = true
    this.#set({ isAsking: false })
  }

  keep(key: string): void {
    this.#isDismissed = false
    this.#storage.setItem(storageKey, key)
    this.#set({ key, isAsking: false, isRejected: false })
  }

  #set(change: Partial<KeyState>): void {
    this.#state = { ...this.#state, ...change }
    for (const listener of this.#listeners) listener()
  }
}
