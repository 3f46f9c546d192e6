// Chooses the model. The browser's own select: it is at home on every screen and with every keyboard.
import { type ReactNode, useMemo } from 'react'
import type { ModelEntry } from '../api/client.ts'
import { explainFailure } from '../api/failure.ts'
import { useServices, useStore } from '../services.ts'
import { Icon } from '../shell/icons.tsx'
import { modelState } from '../status/model-state.ts'

export function ModelPicker(props: {
  models: readonly ModelEntry[] | null
  chosen: string | null
  onChoose: (id: string) => void
}): ReactNode {
  const { models, chosen } = props
  const { view, viewFailure, modelsFailure } = useStore(useServices().cluster)
  const groups = useMemo(() => groupsOf(models ?? []), [models])
  if (models === null || chosen === null) {
    const failed = modelsFailure === null ? null : explainFailure(modelsFailure).title
    return (
      <p className="model-none">
        {failed ?? (models === null ? 'Asking for models …' : 'No models yet')}
      </p>
    )
  }
  // What was heard before the server fell silent is for the status area, which tells its age.
  const state = view === null || viewFailure !== null ? null : modelState(view, chosen)
  return (
    <label className="model-picker">
      <span className="unseen">Model</span>
      <select value={chosen} onChange={(event) => props.onChoose(event.target.value)}>
        {groups.map(({ title, entries }) => (
          <optgroup key={title} label={title}>
            {entries.map(({ id }) => (
              <option key={id} value={id}>
                {id}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
      <Icon name="chevron" />
      {state !== null && !state.isReady && <span className="model-note">{state.words}</span>}
    </label>
  )
}

function groupsOf(
  models: readonly ModelEntry[],
): readonly { title: string; entries: readonly ModelEntry[] }[] {
  return [
    { title: 'Loaded', entries: models.filter(({ loaded }) => loaded) },
    { title: 'On disk, loads when asked', entries: models.filter(({ loaded }) => !loaded) },
  ].filter(({ entries }) => entries.length > 0)
}
