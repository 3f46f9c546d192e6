// bushel mcp: the knowledge base and the cluster for agents, over stdio or HTTP.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import type { CliContext } from '../command.ts'
import { withKb } from '../kb/open-kb.ts'

export function register(command: Command, context: CliContext): void {
  command
    .description('serve the knowledge base and the cluster to agents (Model Context Protocol)')
    .option('--http <port>', 'serve HTTP on 127.0.0.1 at this port instead of stdio', parsePort)
    .addHelpText(
      'after',
      `
Examples:
  claude mcp add bushel -- bushel mcp     an agent that starts its servers itself
  bushel mcp --http 28750                 agents connect to http://127.0.0.1:28750/mcp`,
    )
    .action((options: { http?: number; json?: boolean }) => run(context, options))
}

async function run(context: CliContext, options: { http?: number; json?: boolean }): Promise<void> {
  const manifest = readFileSync(join(context.programDir, 'package.json'), 'utf8')
  const { version } = JSON.parse(manifest) as { version: string }
  const stop = new AbortController()
  const end = (): void => stop.abort()
  process.once('SIGINT', end).once('SIGTERM', end)
  try {
    await withKb(context, async (kb) => {
      const { allTools } = await import('../mcp/tools.ts')
      const parts = { kb, tools: allTools(kb, context), version }
      if (options.http === undefined) {
        const { serveStdio } = await import('../mcp/serve-stdio.ts')
        await serveStdio(parts, { stdin: process.stdin, stdout: process.stdout }, stop.signal)
        return
      }
      const { serveHttp } = await import('../mcp/serve-http.ts')
      const serving = await serveHttp(parts, options.http)
      if (options.json === true) context.out.json({ url: serving.url })
      else context.out.note(`Serving agents at ${serving.url}; stop with Ctrl-C.`)
      await new Promise<void>((resolve) => {
        stop.signal.addEventListener('abort', () => resolve(), { once: true })
      })
      await serving.close()
    })
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end)
  }
}

function parsePort(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new InvalidArgumentError('It must be a port from 0 to 65535; 0 takes a free one.')
  return port
}
