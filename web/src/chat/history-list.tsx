// The chats that this browser keeps: open one, delete one, delete all.
import { type ReactNode, useState } from 'react'
import { useServices, useStore } from '../services.ts'
import { IconButton } from '../shell/icons.tsx'
import { isAnswering, titleOf } from './conversation.ts'

export function HistoryList({ onOpen }: { onOpen: () => void }): ReactNode {
  const { chats: store } = useServices()
  const { chats, current } = useStore(store)
  const [isAsking, setAsking] = useState(false)
  if (chats.length === 0)
    return <p className="history-empty">Your chats will be kept here, in this browser.</p>
  return (
    <nav className="history" aria-label="Chats">
      <ul>
        {chats.map((chat) => (
          <li key={chat.id} aria-current={chat.id === current?.id ? 'true' : undefined}>
            <button
              type="button"
              className="history-item"
              title={titleOf(chat)}
              onClick={() => {
                store.open(chat.id)
                onOpen()
              }}
            >
              <span>{titleOf(chat)}</span>
              {isAnswering(chat) && <span className="pulse" role="img" aria-label="Answering" />}
            </button>
            <DeleteButton title={titleOf(chat)} onDelete={() => store.remove(chat.id)} />
          </li>
        ))}
      </ul>
      {isAsking ? (
        <div className="history-clear" role="group" aria-label="Delete all chats?">
          <button
            type="button"
            className="link danger"
            autoFocus
            onClick={() => {
              store.clear()
              setAsking(false)
            }}
          >
            Delete {chats.length === 1 ? 'this chat' : `all ${chats.length}`}
          </button>
          <button type="button" className="link" onClick={() => setAsking(false)}>
            Keep
          </button>
        </div>
      ) : (
        <div className="history-clear">
          <button type="button" className="link" onClick={() => setAsking(true)}>
            Delete all chats …
          </button>
        </div>
      )}
    </nav>
  )
}

/** What is deleted is gone, so it takes two clicks; looking elsewhere takes the first one back. */
function DeleteButton(props: { title: string; onDelete: () => void }): ReactNode {
  const [isArmed, setArmed] = useState(false)
  if (!isArmed)
    return (
      <IconButton icon="trash" label={`Delete “${props.title}”`} onClick={() => setArmed(true)} />
    )
  return (
    <button
      type="button"
      className="link danger"
      autoFocus
      aria-label={`Really delete “${props.title}”`}
      onBlur={() => setArmed(false)}
      onClick={props.onDelete}
    >
      Delete?
    </button>
  )
}
