// Every tool that agents are offered. plan_model and doctor join this list when they exist.
import type { KnowledgeBase } from '../../kb/knowledge-base.ts'
import type { CliContext } from '../command.ts'
import { daemonUrl } from '../daemon-client.ts'
import { clusterStatusTool } from './cluster-tool.ts'
import { kbTools } from './kb-tools.ts'
import type { McpTool } from './tool.ts'

export function allTools(kb: KnowledgeBase, env: CliContext['env']): McpTool[] {
  const daemon = { url: daemonUrl(env), apiKey: env['BUSHEL_API_KEY'] }
  return [...kbTools(kb), clusterStatusTool(daemon)]
}
