// What an empty chat shows.
import type { ReactNode } from 'react'
import { explainFailure } from '../api/failure.ts'
import { useServices, useStore } from '../services.ts'

const suggestions = [
  'What is the capital of France?',
  'Explain in two sentences why the sky is blue.',
  'Write a haiku about a basket of apples.',
] as const

export function Welcome(props: { canAsk: boolean; onAsk: (question: string) => void }): ReactNode {
  const { models, modelsFailure } = useStore(useServices().cluster)
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
      {modelsFailure === null && models?.length === 0 && (
        <p className="notice">
          There is no model yet. Get one with <code>bushel pull</code>, or give{' '}
          <code>bushel up</code> a folder with <code>--model</code>.
        </p>
      )}
    </div>
  )
}
