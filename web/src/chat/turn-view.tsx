// A question and its answer.
import { type KeyboardEvent, type ReactNode, memo, useState } from 'react'
import { IconButton } from '../shell/icons.tsx'
import { AnswerView } from './answer-view.tsx'
import { isRunning } from './answer.ts'
import type { Turn } from './conversation.ts'

interface TurnProps {
  readonly turn: Turn
  readonly isLast: boolean
  readonly onAgain: (changed?: string) => void
}

export const TurnView = memo(
  ({ turn, isLast, onAgain }: TurnProps): ReactNode => {
    const [isEditing, setEditing] = useState(false)
    const canChange = isLast && !isRunning(turn.answer)
    return (
      <article className="turn">
        {isEditing && canChange ? (
          <QuestionEditor
            question={turn.question}
            onCancel={() => setEditing(false)}
            onSend={(changed) => {
              setEditing(false)
              onAgain(changed)
            }}
          />
        ) : (
          <div className="question">
            <h2 className="unseen">You asked</h2>
            <p>{turn.question}</p>
            {canChange && (
              <IconButton icon="edit" label="Edit the question" onClick={() => setEditing(true)} />
            )}
          </div>
        )}
        <AnswerView answer={turn.answer} onAgain={canChange ? () => onAgain() : null} />
      </article>
    )
  },
  // The handler is made anew with every drawing and does the same; older turns need not care.
  (before, after) => before.turn === after.turn && before.isLast === after.isLast && !after.isLast,
)

function QuestionEditor(props: {
  question: string
  onCancel: () => void
  onSend: (changed: string) => void
}): ReactNode {
  const [draft, setDraft] = useState(props.question)
  const send = (): void => {
    if (draft.trim() !== '') props.onSend(draft.trim())
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') {
      event.preventDefault()
      props.onCancel()
    }
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    send()
  }
  return (
    <form
      className="question-editor"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      <textarea
        aria-label="Edit the question"
        autoFocus
        value={draft}
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div className="dialog-actions">
        <button type="button" className="button" onClick={props.onCancel}>
          Cancel
        </button>
        <button type="submit" className="button primary" disabled={draft.trim() === ''}>
          Ask again
        </button>
      </div>
    </form>
  )
}
