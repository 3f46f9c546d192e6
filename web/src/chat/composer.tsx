// Where a question is written. Enter sends, Shift+Enter makes a line, Esc stops (the page listens for that).
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from 'react'
import { Icon } from '../shell/icons.tsx'

export function Composer(props: {
  isBusy: boolean
  canAsk: boolean
  onAsk: (question: string) => void
  onStop: () => void
}): ReactNode {
  const { isBusy, canAsk } = props
  const [draft, setDraft] = useState('')
  const field = useRef<HTMLTextAreaElement>(null)
  const isReady = canAsk && !isBusy && draft.trim() !== ''

  useEffect(() => {
    // On a phone the keyboard would jump up over the page.
    if (window.matchMedia('(hover: hover)').matches) field.current?.focus()
  }, [])

  const send = (): void => {
    if (!isReady) return
    props.onAsk(draft.trim())
    setDraft('')
    field.current?.focus()
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    // Enter also ends the composition of a word in Japanese and others; that is not ours.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    send()
  }
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      <div className="composer-box">
        <label className="unseen" htmlFor="question">
          Your question
        </label>
        <textarea
          id="question"
          ref={field}
          rows={1}
          value={draft}
          placeholder="Ask anything"
          aria-describedby="question-keys"
          onChange={(event) => setDraft(event.target.value)}
          onKeyDown={onKeyDown}
        />
        {isBusy ? (
          <button
            type="button"
            className="send"
            aria-label="Stop"
            title="Stop (Esc)"
            onClick={() => {
              props.onStop()
              field.current?.focus()
            }}
          >
            <Icon name="stop" />
          </button>
        ) : (
          <button
            type="submit"
            className="send"
            aria-label="Send"
            title="Send (Enter)"
            disabled={!isReady}
          >
            <Icon name="send" />
          </button>
        )}
      </div>
      <p id="question-keys" className="composer-keys">
        <kbd>Enter</kbd> sends, <kbd>Shift</kbd>+<kbd>Enter</kbd> new line, <kbd>Esc</kbd> stops
      </p>
    </form>
  )
}
