// What an empty chat shows.
import type { ReactNode } from 'react'
import { explainFailure, isKeyMissing } from '../api/failure.ts'
import { useServices, useStore } from '../services.ts'

/** Questions that a very small model answers well, too: the first answer makes the first impression. */
const suggestions = [
  'Give me three tips for a good night of sleep.',
  'Write a Python function that reverses a string, with an example.',
  'What is the capital city of France, and what is it known for?',
] as const

export function Welcome(props: { canAsk: boolean; onAsk: (question: string) => void }): ReactNode {
  const { cluster, keys } = useServices()
  const { models, modelsFailure } = useStore(cluster)
  return (
    <div className="welcome">
      <h1>What would you like to know?</h1>
      <p>Answers are made on your own machines. Nothing you write leaves them.</p>
      {props.canAsk && (
        <ul className="suggestions" aria-label="Suggestions">
          {suggestions.map((question) => (
            <li key={question}>
              <button type="button" className="button" onClick={() => props.onAsk(question)}>
                {question}
              </button>
            </li>
          ))}
        </ul>
      )}
      {modelsFailure !== null && <p className="notice">{explainFailure(modelsFailure).advice}</p>}
      {modelsFailure !== null && isKeyMissing(modelsFailure) && (
        <button type="button" className="button primary" onClick={() => keys.ask()}>
          Enter a key
        </button>
      )}
      {modelsFailure === null && models?.length === 0 && (
        <p className="notice">
          There is no model yet. Get one with <code>bushel pull</code>, or give{' '}
          <code>bushel up</code> a folder with <code>--model</code>.
        </p>
      )}
    </div>
  )
}
