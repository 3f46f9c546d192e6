// The frame of the page: what is always there on the left, the current page on the right.
import { type ReactNode, useEffect, useState } from 'react'
import { HistoryList } from '../chat/history-list.tsx'
import { useServices } from '../services.ts'
import { StatusPanel } from '../status/status-panel.tsx'
import iconUrl from './icon.svg'
import { Icon, IconButton } from './icons.tsx'
import { KeyDialog } from './key-dialog.tsx'
import { Tabs, usePage } from './pages.tsx'
import { useTheme } from './theme.ts'

export function App(): ReactNode {
  const { chats, preferences } = useServices()
  const [isMenuOpen, setMenuOpen] = useState(false)
  const [theme, nextTheme] = useTheme(preferences)
  const page = usePage()
  const closeMenu = (): void => setMenuOpen(false)

  useEffect(() => {
    if (!isMenuOpen) return undefined
    document.querySelector<HTMLElement>('.sidebar .narrow')?.focus()
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') setMenuOpen(false)
    }
    document.addEventListener('keydown', onKey)
    return () => {
      document.removeEventListener('keydown', onKey)
      document.getElementById('menu-button')?.focus()
    }
  }, [isMenuOpen])

  return (
    <div className="app" data-menu={isMenuOpen ? 'open' : 'closed'}>
      <button
        type="button"
        className="skip"
        onClick={() => document.getElementById('question')?.focus()}
      >
        Skip to the question
      </button>
      <aside className="sidebar" aria-label="Chats and status">
        <div className="brand">
          <img src={iconUrl} alt="" width="26" height="26" />
          <span>Bushel</span>
          <IconButton icon={theme} label={`Colours: ${theme}`} onClick={nextTheme} />
          <IconButton icon="close" label="Close the menu" onClick={closeMenu} className="narrow" />
        </div>
        <Tabs current={page} />
        <button
          type="button"
          className="button new-chat"
          onClick={() => {
            chats.startNew()
            closeMenu()
            document.getElementById('question')?.focus()
          }}
        >
          <Icon name="plus" /> New chat
        </button>
        <HistoryList onOpen={closeMenu} />
        <StatusPanel />
      </aside>
      <button type="button" className="veil" aria-label="Close the menu" onClick={closeMenu} />
      <page.Content openMenu={() => setMenuOpen(true)} />
      <KeyDialog />
    </div>
  )
}
