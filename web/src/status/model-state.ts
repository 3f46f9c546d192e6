// What the cluster view says about one model, in the words and colours of the page.
import type { ClusterView, DeploymentView } from '../../../src/wire/cluster-view.ts'
import { assertNever } from '../assert-never.ts'

export type Tone = 'good' | 'busy' | 'bad' | 'idle'

export interface ModelState {
  readonly tone: Tone
  readonly words: string
  /** How far the weights are loaded, where that is what happens; else null. */
  readonly fraction: number | null
  readonly isReady: boolean
}

const phaseWords: Readonly<Record<string, string>> = {
  reserved: 'reserving memory',
  start: 'starting',
  load: 'loading weights',
  connect: 'connecting machines',
  'self-test': 'testing itself',
  canary: 'making a first token',
}

export function modelState(view: ClusterView, model: string): ModelState {
  const deployment = view.deployments.find((other) => other.model === model)
  if (deployment === undefined) {
    return { tone: 'idle', words: 'loads when asked', fraction: null, isReady: false }
  }
  return deploymentState(deployment)
}

export function deploymentState(deployment: DeploymentView): ModelState {
  switch (deployment.status) {
    case 'ready':
      return { tone: 'good', words: 'ready', fraction: null, isReady: true }
    case 'starting':
      return { tone: 'busy', ...startProgress(deployment), isReady: false }
    case 'waiting':
      return {
        tone: 'busy',
        words: `waiting: ${deployment.detail}`,
        fraction: null,
        isReady: false,
      }
    case 'degraded':
      return { tone: 'bad', words: deployment.detail, fraction: null, isReady: false }
    default:
      return assertNever(deployment.status)
  }
}

/** The slowest rank decides: the group answers only when all have come up. */
function startProgress(deployment: DeploymentView): { words: string; fraction: number | null } {
  const slowest = deployment.groups
    .filter((group) => group.status === 'forming')
    .flatMap((group) => group.stages.flatMap((stage) => stage.ranks))
    .filter((rank) => rank.state !== 'ready')
    .sort((a, b) => a.fraction - b.fraction)[0]
  if (slowest === undefined) return { words: 'starting', fraction: null }
  const words = phaseWords[slowest.phase] ?? (slowest.phase || 'starting')
  // At the very beginning nothing has been measured yet.
  if (slowest.phase !== 'load' || slowest.fraction === 0) return { words, fraction: null }
  return { words: `${words} ${Math.floor(slowest.fraction * 100)} %`, fraction: slowest.fraction }
}

/** The cluster in one short line. */
export function summaryOf(view: ClusterView): { tone: Tone; words: string } {
  const states = view.deployments.map((deployment) => deploymentState(deployment))
  const ready = states.filter((state) => state.isReady).length
  const alive = view.machines.filter((machine) => machine.state === 'alive').length
  const machines = alive === 1 ? '1 machine' : `${alive} machines`
  if (ready > 0) return { tone: 'good', words: `Ready on ${machines}` }
  if (states.some((state) => state.tone === 'busy'))
    return { tone: 'busy', words: 'A model is loading' }
  if (states.some((state) => state.tone === 'bad'))
    return { tone: 'bad', words: 'A model has failed' }
  return { tone: 'idle', words: `No model loaded, ${machines}` }
}
