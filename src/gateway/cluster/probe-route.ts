// The route of "bushel probe": it takes minutes, so it tells what it is at, line by line, and the report at the end.
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { z } from 'zod'
import type { ProbeNews } from '../../wire/probe-job.ts'
import type { GatewayApp } from '../context.ts'
import { parseBody, readJson } from '../read-json.ts'

/** Measures machines and links, for the planner. */
export type ProbeAction = (
  options: { readonly linksOnly: boolean },
  progress: (text: string) => void,
) => Promise<object>

const probeRequest = z.object({ linksOnly: z.boolean().default(false) })

export function addProbeRoute(app: GatewayApp, probe: ProbeAction): void {
  app.post('/cluster/probe', async (c) => {
    const { incoming, outgoing } = c.env
    const options = parseBody(probeRequest, await readJson(incoming))
    outgoing.writeHead(200, { 'content-type': 'application/x-ndjson' })
    outgoing.flushHeaders()
    const tell = (news: ProbeNews<object>): void => {
      if (!outgoing.destroyed) outgoing.write(`${JSON.stringify(news)}\n`)
    }
    try {
      const report = await probe(options, (text) => tell({ kind: 'progress', text }))
      tell({ kind: 'report', report })
    } catch (error) {
      tell({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) })
    }
    outgoing.end()
    return RESPONSE_ALREADY_SENT
  })
}
