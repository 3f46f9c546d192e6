// Serves agents over streamable HTTP on this machine alone. Every request stands by itself: nothing we
// offer needs a session, so there is none to lose, to fill up or to steal.
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { UserError } from '../command.ts'
import { type McpParts, createMcpServer } from './server.ts'

/** A question and its frame; whatever is larger is a mistake or an attack. */
const bodyBytesMax = 256 * 1024
const address = '127.0.0.1'

export interface HttpServing {
  readonly url: string
  readonly close: () => Promise<void>
}

export function createMcpApp(parts: McpParts): Hono {
  const app = new Hono()
  const refuse = (code: number, message: string): { jsonrpc: '2.0'; error: object; id: null } => ({
    jsonrpc: '2.0',
    error: { code, message },
    id: null,
  })
  app.use(async (context, next) => {
    // A web page must not reach us, neither from its own origin nor by a name that points here.
    const host = context.req.header('host') ?? ''
    const origin = context.req.header('origin')
    if (!isLocal(`http://${host}`) || (origin !== undefined && !isLocal(origin)))
      return context.json(refuse(-32_000, 'Only programs on this machine may ask.'), 403)
    return next()
  })
  app.post(
    '/mcp',
    bodyLimit({
      maxSize: bodyBytesMax,
      onError: (context) =>
        context.json(refuse(-32_600, `A request may have ${bodyBytesMax} bytes.`), 413),
    }),
    async (context) => {
      const server = createMcpServer(parts)
      const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
      await server.connect(transport)
      try {
        return await transport.handleRequest(context.req.raw)
      } finally {
        await server.close()
      }
    },
  )
  app.all('/mcp', (context) =>
    context.json(refuse(-32_000, 'Send requests by POST; there are no sessions.'), 405, {
      allow: 'POST',
    }),
  )
  app.notFound((context) => context.json(refuse(-32_601, 'The server is at /mcp.'), 404))
  return app
}

export async function serveHttp(parts: McpParts, port: number): Promise<HttpServing> {
  const app = createMcpApp(parts)
  const server = await new Promise<Server>((resolve, reject) => {
    const listening = serve({ fetch: app.fetch, hostname: address, port }, () =>
      resolve(listening as Server),
    )
    listening.once('error', reject)
  }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE')
      throw new UserError(`Port ${port} is taken; choose another with "bushel mcp --http PORT"`)
    if (error.code === 'EACCES')
      throw new UserError(`Port ${port} may not be used by this user; choose one above 1023`)
    throw error
  })
  const bound = (server.address() as AddressInfo).port
  return {
    url: `http://${address}:${bound}/mcp`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function isLocal(url: string): boolean {
  try {
    return ['127.0.0.1', 'localhost', '[::1]'].includes(new URL(url).hostname)
  } catch {
    return false
  }
}
