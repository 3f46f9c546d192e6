// An error inside the conversation: what happened, and what to do.
import type { ReactNode } from 'react'
import { type Failure, explainFailure, isKeyMissing } from '../api/failure.ts'
import { useServices } from '../services.ts'
import { Icon } from '../shell/icons.tsx'

export function FailureCard(props: { failure: Failure; onAgain: (() => void) | null }): ReactNode {
  const { keys } = useServices()
  const { title, detail, advice } = explainFailure(props.failure)
  return (
    <div className="failure">
      <Icon name="warning" />
      <div>
        <h3>{title}</h3>
        <p>{detail}</p>
        <p>{advice}</p>
        <div className="failure-actions">
          {isKeyMissing(props.failure) && (
            <button type="button" className="button" onClick={() => keys.ask()}>
              Enter a key
            </button>
          )}
          {props.onAgain !== null && (
            <button type="button" className="button" onClick={props.onAgain}>
              Try again
            </button>
          )}
        </div>
      </div>
    </div>
  )
}
