// The knowledge base as tools for agents.
import { z } from 'zod'
import type { KnowledgeBase } from '../../kb/knowledge-base.ts'
import { confidences, statuses } from '../../kb/types.ts'
import { detailJson, searchJson, topicJson } from '../kb/json.ts'
import { renderDetail, renderHit, renderTopic } from '../kb/render.ts'
import { type McpTool, ToolRefusal, defineTool } from './tool.ts'

const hitsMax = 50

export function kbTools(kb: KnowledgeBase): McpTool[] {
  return [searchTool(kb), detailTool(kb), skillTool(kb)]
}

function searchTool(kb: KnowledgeBase): McpTool {
  return defineTool({
    name: 'kb_search',
    title: 'Search the knowledge base',
    description:
      'Findings about running AI models on several Macs: RDMA over Thunderbolt 5, JACCL, MLX distributed, ' +
      'parallelism, exo, dnet, training, cost, security, errors and their fixes. Ask in plain words; misspelt ' +
      'words are forgiven. Each finding has a status: cite "stands" and "corrected" ones as kb#ID, and say so ' +
      'when one is disputed or outdated.',
    input: {
      query: z.string().describe('what to look for, in plain words'),
      limit: z.int().min(1).max(hitsMax).default(8),
      tags: z.array(z.string()).default([]).describe('only findings with all of these tags'),
      status: z.array(z.enum(statuses)).default([]).describe('only findings with one of these'),
      confidence: z.array(z.enum(confidences)).default([]),
    },
    run: ({ query, limit, tags, status, confidence }) => {
      const answer = kb.search(query, { limit, tags, statuses: status, confidences: confidence })
      const nothing = 'Nothing found. Try other words; kb_skill lists the topics.'
      return {
        text: answer.hits.map(({ finding }) => renderHit(finding)).join('\n\n') || nothing,
        data: { findings: searchJson(answer), readAs: answer.readAs, cut: answer.cut },
      }
    },
  })
}

function detailTool(kb: KnowledgeBase): McpTool {
  return defineTool({
    name: 'kb_detail',
    title: 'Show one finding',
    description:
      'One finding with evidence, sources, why it was corrected, and its relations in both directions.',
    input: { id: z.int().describe('the number of the finding, such as 306') },
    run: ({ id }) => {
      const detail = kb.detail(id)
      if (detail === null)
        throw new ToolRefusal(`There is no finding ${id}; kb_search finds those there are.`)
      return { text: renderDetail(detail), data: { ...detailJson(detail) } }
    },
  })
}

function skillTool(kb: KnowledgeBase): McpTool {
  return defineTool({
    name: 'kb_skill',
    title: 'Learn a topic',
    description:
      'The digest of a topic: what to know, figures, pitfalls, and questions with answers that cite findings. ' +
      'Without a topic it lists them; "gpu-distributed" is the whole subject.',
    input: { topic: z.string().optional().describe('the name of the topic') },
    run: ({ topic }) => {
      const topics = kb.topics()
      if (topic === undefined) {
        const list = topics.map(({ name, title, summary }) => ({ name, title, summary }))
        const lines = list.map(({ name, summary }) => `${name}: ${summary}`)
        return { text: lines.join('\n'), data: { topics: list } }
      }
      const found = kb.topic(topic)
      if (found === null)
        throw new ToolRefusal(
          `There is no topic "${topic.slice(0, 80)}"; there are ${topics.map(({ name }) => name).join(', ')}.`,
        )
      return { text: renderTopic(found), data: { ...topicJson(found) } }
    },
  })
}
