// The parts of the page that live as long as it does, put together once with the browser's own means.
import { createContext, useContext, useSyncExternalStore } from 'react'
import { createApi } from './api/client.ts'
import { KeyRing } from './api/key-ring.ts'
import { storageOr } from './browser-storage.ts'
import { chatIdOfKey, type KeyValueStore } from './chat/history.ts'
import { ChatStore } from './chat/store.ts'
import { ClusterStore } from './status/cluster-store.ts'

export interface Services {
  readonly chats: ChatStore
  readonly cluster: ClusterStore
  readonly keys: KeyRing
  /** Small choices of the person: model, colours. */
  readonly preferences: KeyValueStore
}

export function createServices(): Services {
  const local = storageOr(() => window.localStorage)
  const keys = new KeyRing(storageOr(() => window.sessionStorage))
  const api = createApi({
    fetch: (path, init) => window.fetch(path, init),
    key: () => keys.getState().key,
    onKeyRefused: keys.refuse,
  })
  const cluster = new ClusterStore({
    api,
    wallMs: () => Date.now(),
    setTimer: (run, afterMs) => {
      const timer = setTimeout(run, afterMs)
      return () => clearTimeout(timer)
    },
  })
  const chats = new ChatStore({
    storage: local,
    ask: (question, report, signal) => api.ask(question, report, signal),
    isModelReady: cluster.isModelReady,
    newId,
    wallMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    onNextFrame: (run) => void requestAnimationFrame(run),
  })
  return { chats, cluster, keys, preferences: local }
}

/** Wires the stores to what happens to the page itself. */
export function watchPage({ chats, cluster }: Services): void {
  const onVisibility = (): void => {
    if (document.visibilityState === 'visible') cluster.start()
    else {
      cluster.pause()
      chats.saveRunning()
    }
  }
  document.addEventListener('visibilitychange', onVisibility)
  window.addEventListener('pagehide', () => chats.saveRunning())
  window.addEventListener('online', () => cluster.askNow())
  window.addEventListener('storage', ({ key }) => {
    const id = key === null ? null : chatIdOfKey(key)
    if (id !== null) chats.reload(id)
  })
  onVisibility()
}

/** randomUUID() exists only on secure origins; a page on a LAN address is none. */
function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

export const ServicesContext = createContext<Services | null>(null)

export function useServices(): Services {
  const services = useContext(ServicesContext)
  if (services === null) throw new Error('The page was drawn without its services')
  return services
}

interface Store<State> {
  readonly subscribe: (listener: () => void) => () => void
  readonly getState: () => State
}

export function useStore<State>(store: Store<State>): State {
  return useSyncExternalStore(store.subscribe, store.getState)
}
