// Asks for an API key when the server wants one.
import { type ReactNode, type SubmitEvent, useEffect, useRef, useState } from 'react'
import { useServices, useStore } from '../services.ts'

export function KeyDialog(): ReactNode {
  const { keys, cluster } = useServices()
  const { isAsking, isRejected } = useStore(keys)
  const [draft, setDraft] = useState('')
  const dialog = useRef<HTMLDialogElement>(null)

  useEffect(() => {
    if (isAsking) dialog.current?.showModal()
    else dialog.current?.close()
  }, [isAsking])

  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault()
    if (draft.trim() === '') return
    keys.keep(draft.trim())
    setDraft('')
    cluster.askNow()
  }

  return (
    <dialog
      ref={dialog}
      className="dialog"
      aria-labelledby="key-title"
      onCancel={() => keys.dismiss()}
    >
      <form onSubmit={onSubmit}>
        <h2 id="key-title">This server asks for an API key</h2>
        <p>
          It is whatever was set as <code>BUSHEL_API_KEY</code> or <code>api_key</code> on the
          server. It stays in this tab and is forgotten when you close it.
        </p>
        <label htmlFor="key">API key</label>
        <input
          id="key"
          type="password"
          autoComplete="off"
          spellCheck={false}
          value={draft}
          aria-describedby={isRejected ? 'key-rejected' : undefined}
          aria-invalid={isRejected}
          onChange={(event) => setDraft(event.target.value)}
        />
        {isRejected && (
          <p id="key-rejected" className="field-error" role="alert">
            The server does not know this key. Check it and try again.
          </p>
        )}
        <div className="dialog-actions">
          <button type="button" className="button" onClick={() => keys.dismiss()}>
            Not now
          </button>
          <button type="submit" className="button primary">
            Use this key
          </button>
        </div>
      </form>
    </dialog>
  )
}
