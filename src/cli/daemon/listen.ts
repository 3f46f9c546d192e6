// Opens the HTTP port, or says in one sentence why it cannot.
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http'
import { UserError } from '../command.ts'
import type { Settings } from '../settings.ts'

export function listen(
  settings: Settings,
  handle: (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<unknown>,
): Promise<Server> {
  // Idle keep-alive sockets outlive the clients' own limits, so that no request meets a closing socket.
  const server = createServer(
    { keepAliveTimeout: 75_000, requestTimeout: 0, headersTimeout: 30_000 },
    (incoming, outgoing) => void handle(incoming, outgoing),
  )
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const where = `${settings.listen}:${settings.port}`
      const reason =
        error.code === 'EADDRINUSE'
          ? `Port ${settings.port} is taken by another program; choose one with --port or BUSHEL_PORT`
          : `Cannot listen on ${where}: ${error.message}`
      reject(new UserError(reason))
    })
    server.listen(settings.port, settings.listen, () => resolve(server))
  })
}
