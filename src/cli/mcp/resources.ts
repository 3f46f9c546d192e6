// The knowledge base as resources that an agent can list and read: findings, topics and conflicts.
import { type McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js'
import { ErrorCode, McpError, type ReadResourceResult } from '@modelcontextprotocol/sdk/types.js'
import { citationOf, idAskedFor } from '../../kb/citations.ts'
import type { KnowledgeBase } from '../../kb/knowledge-base.ts'
import { renderConflict, renderDetail, renderTopic } from '../kb/render.ts'

const mimeType = 'text/markdown'

export function registerResources(server: McpServer, kb: KnowledgeBase): void {
  const page = (uri: URL, text: string): ReadResourceResult => ({
    contents: [{ uri: uri.href, mimeType, text }],
  })
  const missing = (what: string): McpError =>
    new McpError(ErrorCode.InvalidParams, `There is no ${what}`)

  server.registerResource(
    'finding',
    new ResourceTemplate('kb://finding/{id}', {
      list: () => ({
        resources: kb.findings().map(({ id, claim }) => ({
          uri: `kb://finding/${id}`,
          name: citationOf(id),
          description: claim,
          mimeType,
        })),
      }),
    }),
    { title: 'Finding', description: 'One finding with its evidence and relations', mimeType },
    (uri, { id }) => {
      const detail = kb.detail(idAskedFor(String(id)) ?? Number.NaN)
      if (detail === null) throw missing(`finding "${String(id).slice(0, 40)}"`)
      return page(uri, renderDetail(detail))
    },
  )

  server.registerResource(
    'topic',
    new ResourceTemplate('kb://topic/{name}', {
      list: () => ({
        resources: kb.topics().map(({ name, title, summary }) => ({
          uri: `kb://topic/${name}`,
          name: title,
          description: summary,
          mimeType,
        })),
      }),
    }),
    { title: 'Topic', description: 'What to know about a topic', mimeType },
    (uri, { name }) => {
      const topic = kb.topic(String(name))
      if (topic === null) throw missing(`topic "${String(name).slice(0, 80)}"`)
      return page(uri, renderTopic(topic))
    },
  )

  server.registerResource(
    'conflicts',
    'kb://conflicts',
    {
      title: 'Conflicts',
      description: 'Where sources contradict each other, and what to use',
      mimeType,
    },
    (uri) => page(uri, kb.conflicts().map(renderConflict).join('\n\n')),
  )
}
