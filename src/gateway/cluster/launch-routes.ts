// Routes of "bushel launch": one request brings the folder and stays open for the output; short ones beside it
// bring input and signals. Its end, from either side, is the end of the launch.
import { createInterface } from 'node:readline'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { ApiError } from '../api-error.ts'
import type { GatewayApp } from '../context.ts'
import { parseBody, readJson } from '../read-json.ts'
import {
  type LaunchFilePart,
  type LaunchInput,
  type LaunchRequest,
  type ToLaunchClient,
  launchFilePart,
  launchInput,
  launchRequest,
} from '../../wire/launch-messages.ts'

export interface LaunchActions {
  /** Settles when every rank has ended and the client has heard of it. */
  launch(about: {
    request: LaunchRequest
    files: AsyncIterable<LaunchFilePart>
    toClient: (message: ToLaunchClient) => Promise<void>
  }): Promise<void>
  /** False when there is no such launch any more. */
  input(id: string, input: LaunchInput): Promise<boolean>
  hangUp(id: string): void
}

export function addLaunchRoutes(app: GatewayApp, actions: LaunchActions): void {
  app.post('/cluster/launch', async (c) => {
    const { incoming, outgoing } = c.env
    const lines = createInterface({ input: incoming, crlfDelay: Infinity })[Symbol.asyncIterator]()
    const first = await lines.next()
    const request = parseBody(launchRequest, jsonOf(first.done === true ? '' : first.value))
    let id = ''
    let isOpen = true
    outgoing.on('close', () => {
      isOpen = false
      actions.hangUp(id)
    })
    outgoing.writeHead(200, { 'content-type': 'application/x-ndjson' })
    outgoing.flushHeaders()
    const toClient = async (message: ToLaunchClient): Promise<void> => {
      if (message.kind === 'accepted') id = message.id
      if (!isOpen) return
      if (outgoing.write(`${JSON.stringify(message)}\n`)) return
      await new Promise<void>((resolve) => {
        outgoing.once('drain', resolve)
        outgoing.once('close', resolve)
      })
    }
    await actions.launch({ request, files: partsOf(lines), toClient })
    outgoing.end()
    return RESPONSE_ALREADY_SENT
  })
  app.post('/cluster/launch/:id/input', async (c) => {
    const input = parseBody(launchInput, await readJson(c.env.incoming))
    if (await actions.input(c.req.param('id'), input)) return c.json({ taken: true })
    throw new ApiError({ status: 404, message: 'This launch has ended' })
  })
}

async function* partsOf(lines: AsyncIterator<string>): AsyncIterable<LaunchFilePart> {
  for (let next = await lines.next(); next.done !== true; next = await lines.next())
    yield parseBody(launchFilePart, jsonOf(next.value))
}

function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    throw new ApiError({ status: 400, message: 'A line of the launch is not valid JSON' })
  }
}
