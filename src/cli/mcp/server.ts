// The MCP server: tools and resources on the official SDK, for any transport.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import type { KnowledgeBase } from '../../kb/knowledge-base.ts'
import { registerResources } from './resources.ts'
import { type McpTool, ToolRefusal } from './tool.ts'

export interface McpParts {
  readonly kb: KnowledgeBase
  readonly tools: readonly McpTool[]
  readonly version: string
}

export function createMcpServer({ kb, tools, version }: McpParts): McpServer {
  const server = new McpServer(
    { name: 'bushel', title: 'Bushel', version },
    {
      instructions:
        'Knowledge about running AI models on several Macs, and the state of this cluster. ' +
        'Search with kb_search, read findings with kb_detail, cite them as kb#ID.',
    },
  )
  for (const tool of tools)
    server.registerTool(
      tool.name,
      {
        title: tool.title,
        description: tool.description,
        inputSchema: tool.input,
        annotations: { readOnlyHint: true, openWorldHint: false },
      },
      (args: unknown) => call(tool, args),
    )
  registerResources(server, kb)
  return server
}

async function call(tool: McpTool, args: unknown): Promise<CallToolResult> {
  try {
    const { text, data } = await tool.run(args)
    return { content: [{ type: 'text', text }], structuredContent: { ...data } }
  } catch (error) {
    if (!(error instanceof ToolRefusal)) throw error
    return { content: [{ type: 'text', text: error.message }], isError: true }
  }
}
