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

/** A model chosen for one chat; another chat goes on with the model it had. */
interface Pick {
  readonly chat: string | null
  readonly model: string
}

export function ChatPage({ openMenu }: { openMenu: () => void }): ReactNode {
  const { chats, cluster, preferences } = useServices()
  const { current, isUnsaved } = useStore(chats)
  const { models } = useStore(cluster)
  const [picked, setPicked] = useState<Pick | null>(null)
  const chatId = current?.id ?? null
  const last = lastTurn(current)
  const model = chooseModel({
    models: models ?? [],
    wishes: [
      picked?.chat === chatId ? picked.model : null,
      last?.answer.model,
      preferences.getItem(modelKey),
    ],
  })
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
            setPicked({ chat: chatId, model: id })
          }}
        />
      </header>
      <ConversationView
        key={chatId ?? 'new'}
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
      <Announcer key={`said-${chatId ?? 'new'}`} answer={last?.answer ?? null} />
    </main>
  )
}
