// The pages of the dashboard. A new one is a line here; the tabs appear with the second.
import { type ReactNode, useSyncExternalStore } from 'react'
import { ChatPage } from '../chat/chat-page.tsx'

export interface Page {
  /** Stands behind the # of the address. */
  readonly id: string
  readonly title: string
  readonly Content: (props: { openMenu: () => void }) => ReactNode
}

export const pages: readonly [Page, ...Page[]] = [{ id: 'chat', title: 'Chat', Content: ChatPage }]

function subscribeToHash(listener: () => void): () => void {
  window.addEventListener('hashchange', listener)
  return () => window.removeEventListener('hashchange', listener)
}

export function usePage(): Page {
  const id = useSyncExternalStore(subscribeToHash, () => window.location.hash.replace(/^#\/?/, ''))
  return pages.find((page) => page.id === id) ?? pages[0]
}

export function Tabs({ current }: { current: Page }): ReactNode {
  if (pages.length < 2) return null
  return (
    <nav className="tabs" aria-label="Pages">
      {pages.map((page) => (
        <a key={page.id} href={`#/${page.id}`} aria-current={page === current ? 'page' : undefined}>
          {page.title}
        </a>
      ))}
    </nav>
  )
}
