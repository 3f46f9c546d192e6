// Machines and models as the cluster last said, with the age of what it said.
import type { ReactNode } from 'react'
import type { ClusterView, DeploymentView, MachineView } from '../../../src/wire/cluster-view.ts'
import { type Failure, explainFailure, isKeyMissing } from '../api/failure.ts'
import { useServices, useStore } from '../services.ts'
import { ageInWords, isOld } from './freshness.ts'
import { formatBytes, machineLine } from './machine-state.ts'
import { type Tone, deploymentState, summaryOf } from './model-state.ts'
import { ProgressBar } from './progress-bar.tsx'
import { useNow } from './use-now.ts'

export function StatusPanel(): ReactNode {
  const { cluster } = useServices()
  const { view, viewAtMs, viewFailure } = useStore(cluster)
  const ageMs = Math.max(0, useNow(1000) - viewAtMs)
  const isPast = view !== null && isOld(ageMs)
  return (
    <section className="status" aria-labelledby="status-title" data-old={isPast}>
      <h2 id="status-title" className="unseen">
        Status
      </h2>
      {viewFailure !== null && <FailureLine failure={viewFailure} />}
      {view !== null && (
        <div className="status-body">
          <Models view={view} />
          <Machines view={view} ageMs={ageMs} />
        </div>
      )}
      <p className="status-age">{ageLine(view !== null, { ageMs, isPast })}</p>
    </section>
  )
}

function ageLine(isKnown: boolean, { ageMs, isPast }: { ageMs: number; isPast: boolean }): string {
  if (!isKnown) return 'Nothing heard yet'
  return isPast ? `Not current: last updated ${ageInWords(ageMs)}` : `Updated ${ageInWords(ageMs)}`
}

function FailureLine({ failure }: { failure: Failure }): ReactNode {
  const { keys } = useServices()
  if (failure.kind === 'refused' && failure.status === 403)
    return (
      <p className="status-failure">This API key may ask models, but not look at the cluster.</p>
    )
  const { title, advice } = explainFailure(failure)
  return (
    <p className="status-failure">
      {title}.{' '}
      {isKeyMissing(failure) ? (
        <button type="button" className="link" onClick={() => keys.ask()}>
          Enter a key
        </button>
      ) : (
        advice
      )}
    </p>
  )
}

function Machines({ view, ageMs }: { view: ClusterView; ageMs: number }): ReactNode {
  return (
    <>
      <h3>Machines</h3>
      <ul>
        {view.machines.map((machine) => (
          <MachineItem
            key={machine.id}
            machine={machine}
            isSelf={machine.id === view.self}
            ageMs={ageMs}
          />
        ))}
      </ul>
    </>
  )
}

function MachineItem(props: { machine: MachineView; isSelf: boolean; ageMs: number }): ReactNode {
  const { machine, isSelf } = props
  const line = machineLine(machine, props.ageMs)
  return (
    <li data-old={line.isOld}>
      <Dot tone={line.tone} />
      <span className="status-name">{machine.name}</span>
      <Words text={isSelf && !line.isOld ? 'this one' : line.words} />
      {line.reserved !== null && (
        <span
          className="status-memory"
          title="Set aside for models, of what this machine lends. Not a reading of memory in use."
        >
          <ProgressBar
            label="Memory reserved"
            fraction={line.reserved.bytes / line.reserved.ofBytes}
          />
          {formatBytes(line.reserved.bytes)} of {formatBytes(line.reserved.ofBytes)} reserved
        </span>
      )}
    </li>
  )
}

function Models({ view }: { view: ClusterView }): ReactNode {
  if (view.deployments.length === 0) return null
  return (
    <>
      <h3>Models</h3>
      <ul>
        {view.deployments.map((deployment) => (
          <ModelItem key={deployment.id} deployment={deployment} />
        ))}
      </ul>
    </>
  )
}

function ModelItem({ deployment }: { deployment: DeploymentView }): ReactNode {
  const state = deploymentState(deployment)
  return (
    <li>
      <Dot tone={state.tone} />
      <span className="status-name" title={deployment.model}>
        {shortName(deployment.model)}
      </span>
      <Words text={state.words} />
      {state.fraction !== null && (
        <ProgressBar label={`Loading ${deployment.model}`} fraction={state.fraction} />
      )}
    </li>
  )
}

/** Beside the name where there is room, under it where there is not. */
function Words({ text }: { text: string }): ReactNode {
  return <span className={text.length > 12 ? 'status-detail' : 'status-words'}>{text}</span>
}

/** Names from a hub begin with their maker's; the part behind it tells models apart. */
function shortName(model: string): string {
  return model.slice(model.lastIndexOf('/') + 1)
}

function Dot({ tone }: { tone: Tone }): ReactNode {
  return <span className="dot" data-tone={tone} aria-hidden="true" />
}

/** The whole cluster as one dot, for where there is no room. */
export function StatusDot(): ReactNode {
  const { view, viewAtMs } = useStore(useServices().cluster)
  const isPast = isOld(useNow(5000) - viewAtMs)
  const { tone, words } =
    view === null || isPast ? { tone: 'idle' as const, words: 'Not current' } : summaryOf(view)
  return <span className="dot" data-tone={tone} role="img" aria-label={words} title={words} />
}
