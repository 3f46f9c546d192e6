// Opens the HTTP port, or says in one sentence why it cannot.
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http'
import { UserError } from '../command.ts'

export function listen(
  where: { listen: string; port: number; advice: string },
  handle: (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<unknown>,
): Promise<Server> {
  const { port } = where
  // Idle keep-alive sockets outlive the clients' own limits, so that no request meets a closing socket.
  const server = createServer(
    { keepAliveTimeout: 75_000, requestTimeout: 0, headersTimeout: 30_000 },
    (incoming, outgoing) => void handle(incoming, outgoing),
  )
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason =
        error.code === 'EADDRINUSE'
          ? `Port ${port} is taken by another program; ${where.advice}`
          : `Cannot listen on ${where.listen}:${port}: ${error.message}`
      reject(new UserError(reason))
    })
    server.listen(port, where.listen, () => resolve(server))
  })
}
