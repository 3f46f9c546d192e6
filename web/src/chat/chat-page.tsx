// The chat: conversation above, question below.
import { type ReactNode, useEffect, useState } from 'react'
import { useServices, useStore } from '../services.ts'
import { Icon } from '../shell/icons.tsx'
import { StatusDot } from '../status/status-panel.tsx'
import { Announcer } from './announcer.tsx'
import { chooseModel } from './choose-model.ts'
import { Composer } from './composer.tsx'
import { ConversationView } from './conversation-view.tsx'
import { isAnswering, lastTurn } from './conversation.ts'
import { ModelPicker } from './model-picker.tsx'

const modelKey = 'bushel.model'

export function ChatPage({ openMenu }: { openMenu: () => void }): ReactNode {
  const { chats, cluster, preferences } = useServices()
  const { current, isUnsaved } = useStore(chats)
  const { models } = useStore(cluster)
  const [picked, setPicked] = useState(() => preferences.getItem(modelKey))
  const last = lastTurn(current)
  const model = chooseModel({ models: models ?? [], wishes: [picked, last?.answer.model] })
  const isBusy = isAnswering(current)

  useEffect(() => {
    if (!isBusy) return undefined
    const onKey = (event: KeyboardEvent): void => {
      // A dialog or the menu takes the key first.
      const isTaken = document.querySelector("dialog[open], [data-menu='open']") !== null
      if (event.key === 'Escape' && !event.defaultPrevented && !isTaken) chats.stop()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [chats, isBusy])

  const ask = (question: string): void => {
    if (model !== null) chats.ask(question, model)
    // A model that has to be loaded shows in the view at once.
    cluster.askNow()
  }
  return (
    <main className="chat">
      <header className="topbar">
        <button
          type="button"
          id="menu-button"
          className="icon-button narrow"
          aria-label="Open the menu"
          onClick={openMenu}
        >
          <Icon name="menu" />
          <StatusDot />
        </button>
        <ModelPicker
          models={models}
          chosen={model}
          onChoose={(id) => {
            preferences.setItem(modelKey, id)
            setPicked(id)
          }}
        />
      </header>
      <ConversationView
        key={current?.id ?? 'new'}
        chat={current}
        canAsk={model !== null}
        onAsk={ask}
        onAgain={(changed) => model !== null && chats.askAgain(model, changed)}
      />
      {isUnsaved && (
        <p className="notice" role="status">
          This browser has no room to keep the chat. It is lost when you close the page.
        </p>
      )}
      <Composer isBusy={isBusy} canAsk={model !== null} onAsk={ask} onStop={() => chats.stop()} />
      <Announcer key={`said-${current?.id ?? 'new'}`} answer={last?.answer ?? null} />
    </main>
  )
}
