// Between the question and the first token: a sign of life, or how far the model's loading has come.
import type { ReactNode } from 'react'
import { useServices, useStore } from '../services.ts'
import { ageInWords, isOld } from '../status/freshness.ts'
import { modelState } from '../status/model-state.ts'
import { ProgressBar } from '../status/progress-bar.tsx'
import { useNow } from '../status/use-now.ts'

export function WaitingLine({ model }: { model: string }): ReactNode {
  const { view, viewAtMs } = useStore(useServices().cluster)
  const ageMs = useNow(1000) - viewAtMs
  const state = view === null ? null : modelState(view, model)
  if (state === null || state.isReady) return <span className="pulse" aria-hidden="true" />
  const isPast = isOld(ageMs)
  const words = state.tone === 'idle' ? 'about to load' : state.words
  return (
    <div className="waiting">
      <p>
        <strong>{model}</strong>
        <span>{isPast ? `no news; ${ageInWords(ageMs)} it was ${words}` : words}</span>
      </p>
      <ProgressBar label={`Loading ${model}`} fraction={isPast ? null : state.fraction} />
    </div>
  )
}
