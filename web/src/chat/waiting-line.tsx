// Between the question and the first token: a sign of life, or how far the model's loading has come.
import type { ReactNode } from 'react'
import { useServices, useStore } from '../services.ts'
import { modelState } from '../status/model-state.ts'
import { ProgressBar } from '../status/progress-bar.tsx'

export function WaitingLine({ model }: { model: string }): ReactNode {
  const { view } = useStore(useServices().cluster)
  const state = view === null ? null : modelState(view, model)
  if (state === null || state.isReady) return <span className="pulse" aria-hidden="true" />
  return (
    <div className="waiting">
      <p>
        <strong>{model}</strong> {state.tone === 'idle' ? 'is about to load' : state.words}
      </p>
      <ProgressBar label={`Loading ${model}`} fraction={state.fraction} />
    </div>
  )
}
