// The browser's storages, or a stand-in where they are switched off: then things live as long as the page.
import type { KeyValueStore } from './chat/history.ts'

export function storageOr(open: () => Storage): KeyValueStore {
  try {
    const storage = open()
    // Some browsers hand out a storage that refuses every write.
    storage.setItem('bushel.probe', '')
    storage.removeItem('bushel.probe')
    return storage
  } catch {
    return memoryStorage()
  }
}

export function memoryStorage(): KeyValueStore {
  const entries = new Map<string, string>()
  return {
    get length() {
      return entries.size
    },
    getItem: (key) => entries.get(key) ?? null,
    setItem: (key, value) => void entries.set(key, value),
    removeItem: (key) => void entries.delete(key),
    key: (index) => [...entries.keys()][index] ?? null,
  }
}
