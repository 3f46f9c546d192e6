// All turns of a chat, its end kept in sight while it grows.
import type { ReactNode } from 'react'
import { IconButton } from '../shell/icons.tsx'
import type { Chat } from './conversation.ts'
import { TurnView } from './turn-view.tsx'
import { useStickToBottom } from './use-stick-to-bottom.ts'
import { Welcome } from './welcome.tsx'

export function ConversationView(props: {
  chat: Chat | null
  canAsk: boolean
  onAsk: (question: string) => void
  onAgain: (changed?: string) => void
}): ReactNode {
  const { ref, isAway, stick } = useStickToBottom()
  const turns = props.chat?.turns ?? []
  if (turns.length === 0) return <Welcome canAsk={props.canAsk} onAsk={props.onAsk} />
  return (
    <div className="conversation-frame">
      {/* Focusable, so that it can be scrolled with the keyboard. */}
      <div className="conversation" ref={ref} tabIndex={0} role="region" aria-label="Conversation">
        <div className="column">
          {turns.map((turn, index) => (
            <TurnView
              key={turn.id}
              turn={turn}
              isLast={index === turns.length - 1}
              onAgain={(changed) => {
                stick()
                props.onAgain(changed)
              }}
            />
          ))}
        </div>
      </div>
      {isAway && <IconButton icon="down" label="To the end" className="to-end" onClick={stick} />}
    </div>
  )
}
