// Keeps asking the server how the cluster and its models are, gently: slower when hidden or refused.
import type { ClusterView } from '../../../src/wire/cluster-view.ts'
import type { Api, ModelEntry } from '../api/client.ts'
import { type Failure, RequestFailed } from '../api/failure.ts'
import { modelState } from './model-state.ts'

export interface ClusterState {
  /** Null until the first answer; the list stays when a later request fails. */
  readonly models: readonly ModelEntry[] | null
  readonly view: ClusterView | null
  /** When the view was asked for, by the wall clock: that one goes on while a laptop sleeps. */
  readonly viewAtMs: number
  /** Why the latest request for the view or the models failed; null when it did not. */
  readonly viewFailure: Failure | null
  readonly modelsFailure: Failure | null
}

export interface ClusterPorts {
  readonly api: Pick<Api, 'models' | 'clusterView'>
  readonly wallMs: () => number
  readonly setTimer: (run: () => void, afterMs: number) => () => void
}

const pace = {
  calmMs: 2000,
  /** A model comes up: people watch the progress. */
  busyMs: 500,
  /** A key that may not look will not be allowed to a second later. */
  refusedMs: 15_000,
} as const

/** When to ask again, given what is known. */
export function nextAskMs({ view, viewFailure, modelsFailure }: ClusterState): number {
  if (viewFailure?.kind === 'refused' || modelsFailure?.kind === 'refused') return pace.refusedMs
  if (viewFailure !== null || view === null) return pace.calmMs
  const isBusy = view.deployments.some(
    ({ status }) => status === 'starting' || status === 'waiting',
  )
  return isBusy ? pace.busyMs : pace.calmMs
}

export class ClusterStore {
  readonly #ports: ClusterPorts
  readonly #listeners = new Set<() => void>()
  #cancelTimer: (() => void) | null = null
  #isStarted = false
  #round = 0
  #state: ClusterState = {
    models: null,
    view: null,
    viewAtMs: 0,
    viewFailure: null,
    modelsFailure: null,
  }

  constructor(ports: ClusterPorts) {
    this.#ports = ports
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly getState = (): ClusterState => this.#state

  /** Null when no view has arrived that could say. */
  readonly isModelReady = (model: string): boolean | null =>
    this.#state.view === null ? null : modelState(this.#state.view, model).isReady

  start(): void {
    this.#isStarted = true
    this.askNow()
  }

  /** While nobody looks, nothing is asked. */
  pause(): void {
    this.#isStarted = false
    this.#cancelTimer?.()
    this.#cancelTimer = null
  }

  askNow(): void {
    if (!this.#isStarted) return
    this.#cancelTimer?.()
    void this.#ask(++this.#round)
  }

  async #ask(round: number): Promise<void> {
    const { api } = this.#ports
    const viewAtMs = this.#ports.wallMs()
    const view = api.clusterView().then(
      (view) => ({ view, viewAtMs, viewFailure: null }),
      (error: unknown) => ({ viewFailure: failureOf(error) }),
    )
    const models = api.models().then(
      (models) => ({ models, modelsFailure: null }),
      (error: unknown) => ({ modelsFailure: failureOf(error) }),
    )
    const change = { ...(await models), ...(await view) }
    // A later round has been started since; it will tell.
    if (round !== this.#round) return
    this.#state = { ...this.#state, ...change }
    for (const listener of this.#listeners) listener()
    if (!this.#isStarted) return
    this.#cancelTimer = this.#ports.setTimer(() => this.askNow(), nextAskMs(this.#state))
  }
}

function failureOf(error: unknown): Failure {
  return error instanceof RequestFailed ? error.failure : { kind: 'unreachable' }
}
