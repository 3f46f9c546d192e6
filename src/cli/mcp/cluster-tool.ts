// The state of the cluster as a tool for agents: asks the daemon on this machine, if one runs.
import { type McpTool, defineTool } from './tool.ts'

/** The daemon is on this machine: it answers at once or not at all. */
const viewTimeoutMs = 3_000

export type FetchView = (timeoutMs: number) => Promise<Response>

export function clusterStatusTool(url: string, fetchView: FetchView = fetchFrom(url)): McpTool {
  return defineTool({
    name: 'cluster_status',
    title: 'Show the cluster',
    description:
      'The machines, links, deployments and groups of this Bushel cluster as its daemon sees them now.',
    input: {},
    run: async () => {
      const outcome = await readView(fetchView)
      if (outcome.kind === 'view')
        return {
          text: JSON.stringify(outcome.view, null, 2),
          data: { running: true, view: outcome.view },
        }
      const text = `Bushel is not running on this machine (${outcome.reason} at ${url}). Start it with "bushel up".`
      return { text, data: { running: false, reason: outcome.reason } }
    },
  })
}

type ViewOutcome =
  | { readonly kind: 'view'; readonly view: unknown }
  | { readonly kind: 'unreachable'; readonly reason: string }

async function readView(fetchView: FetchView): Promise<ViewOutcome> {
  try {
    const reply = await fetchView(viewTimeoutMs)
    if (reply.ok) return { kind: 'view', view: await reply.json() }
    return { kind: 'unreachable', reason: `HTTP ${reply.status}` }
  } catch (error) {
    const slow = error instanceof Error && error.name === 'TimeoutError'
    return { kind: 'unreachable', reason: slow ? 'no answer in time' : 'nothing answers' }
  }
}

function fetchFrom(url: string): FetchView {
  return (timeoutMs) => fetch(`${url}/cluster/view`, { signal: AbortSignal.timeout(timeoutMs) })
}
