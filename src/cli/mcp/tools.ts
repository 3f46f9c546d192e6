// Every tool that agents are offered.
import type { KnowledgeBase } from '../../kb/knowledge-base.ts'
import type { CliContext } from '../command.ts'
import { daemonUrl } from '../daemon-client.ts'
import { clusterStatusTool } from './cluster-tool.ts'
import { doctorTool } from './doctor-tool.ts'
import { kbTools } from './kb-tools.ts'
import { planTool } from './plan-tool.ts'
import type { McpTool } from './tool.ts'

export function allTools(
  kb: KnowledgeBase,
  context: Pick<CliContext, 'env' | 'programDir'>,
): McpTool[] {
  const { env } = context
  const daemon = { url: daemonUrl(env), apiKey: env['BUSHEL_API_KEY'] }
  return [...kbTools(kb), clusterStatusTool(daemon), planTool(context), doctorTool(context)]
}
