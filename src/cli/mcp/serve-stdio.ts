// Serves one agent over stdin and stdout, until it hangs up.
import type { Readable, Writable } from 'node:stream'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { type McpParts, createMcpServer } from './server.ts'

/** How long questions may still be answered after the agent has closed its side. */
const answersDueMs = 5_000

export async function serveStdio(
  parts: McpParts,
  streams: { readonly stdin: Readable; readonly stdout: Writable },
  stop: AbortSignal,
): Promise<void> {
  const server = createMcpServer(parts)
  const gone = new Promise<void>((resolve) => {
    // Nobody reads any more what we write, or we are told to stop: answers have nowhere to go.
    streams.stdout.once('error', () => resolve())
    stop.addEventListener('abort', () => resolve(), { once: true })
  })
  const ended = new Promise<void>((resolve) => {
    for (const event of ['end', 'close', 'error']) streams.stdin.once(event, () => resolve())
  })
  const transport = new StdioServerTransport(streams.stdin, streams.stdout)
  await server.connect(transport)
  const answered = watchAnswers(transport)
  await Promise.race([gone, ended.then(() => answered(answersDueMs))])
  await server.close()
}

/** Counts questions and answers; the returned function waits until all are answered, or that long. */
function watchAnswers(transport: Transport): (waitMs: number) => Promise<void> {
  let open = 0
  let done = (): void => {}
  const receive = transport.onmessage?.bind(transport)
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK's transport has this one slot
  transport.onmessage = (message, extra) => {
    if ('id' in message && 'method' in message) open += 1
    receive?.(message, extra)
  }
  const send = transport.send.bind(transport)
  transport.send = async (message, options) => {
    await send(message, options)
    if (!('method' in message)) open -= 1
    if (open <= 0) done()
  }
  return (waitMs) =>
    new Promise((resolve) => {
      if (open <= 0) return resolve()
      const timer = setTimeout(resolve, waitMs)
      done = () => {
        clearTimeout(timer)
        resolve()
      }
    })
}
