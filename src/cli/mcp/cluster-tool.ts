// The state of the cluster as a tool for agents: asks the daemon on this machine, if one runs.
import { type McpTool, type ToolAnswer, defineTool } from './tool.ts'

/** The daemon is on this machine: it answers at once or not at all. */
const viewTimeoutMs = 3_000

export function clusterStatusTool(daemon: { url: string; apiKey?: string | undefined }): McpTool {
  return defineTool({
    name: 'cluster_status',
    title: 'Show the cluster',
    description:
      'The machines, links, deployments and groups of this Bushel cluster as its daemon sees them now.',
    input: {},
    run: () => readView(daemon),
  })
}

async function readView(daemon: { url: string; apiKey?: string | undefined }): Promise<ToolAnswer> {
  const headers: Record<string, string> =
    daemon.apiKey === undefined ? {} : { authorization: `Bearer ${daemon.apiKey}` }
  try {
    const reply = await fetch(`${daemon.url}/cluster/view`, {
      headers,
      signal: AbortSignal.timeout(viewTimeoutMs),
    })
    if (!reply.ok) return refused(daemon.url, reply.status)
    const view: unknown = await reply.json()
    return { text: JSON.stringify(view, null, 2), data: { running: true, view } }
  } catch (error) {
    const slow = error instanceof Error && error.name === 'TimeoutError'
    const reason = slow ? 'no answer in time' : 'nothing answers'
    const text = `Bushel is not running on this machine (${reason} at ${daemon.url}). Start it with "bushel up".`
    return { text, data: { running: false, reason } }
  }
}

function refused(url: string, status: number): ToolAnswer {
  const advice = status === 401 || status === 403 ? ' Set BUSHEL_API_KEY to one of its keys.' : ''
  const text = `The daemon at ${url} does not show the cluster (HTTP ${status}).${advice}`
  return { text, data: { running: true, refused: status } }
}
