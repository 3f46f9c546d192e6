// The planner as a tool for agents: how a model would run on machines one names.
import { z } from 'zod'
import { placeModel } from '../../core/plan/place-model.ts'
import { loadPlanTables } from '../../models/plan-tables.ts'
import { type CliContext, UserError } from '../command.ts'
import { noDaemon } from '../plan/current-cluster.ts'
import { renderOutcome, renderShortage } from '../plan/render.ts'
import { buildRequest } from '../plan/request.ts'
import { readPrices } from '../plan/settings.ts'
import { type McpTool, ToolRefusal, defineTool } from './tool.ts'

const plansTold = 8

export function planTool(context: Pick<CliContext, 'env' | 'programDir'>): McpTool {
  return defineTool({
    name: 'plan_model',
    title: 'Plan a model',
    description:
      'How a model would run on given machines: whether it fits, by which strategy, tokens per second, time to first token, longest context, and what a lost machine does. Every figure has its range.',
    input: {
      model: z.string().max(300).describe('a name of the catalogue, such as qwen3-235b-a22b:q4'),
      cluster: z.string().max(500).describe('machines and cables, such as 4xM3Ultra-512,tb5-mesh'),
      context: z.number().int().min(1).max(10_000_000).default(8192),
      concurrency: z.number().int().min(1).max(10_000).default(1),
      policy: z.enum(['fastest', 'throughput', 'context', 'power', 'survive']).default('fastest'),
    },
    run: async ({ model, cluster, context: tokens, concurrency, policy }) => {
      const tables = loadPlanTables(context.programDir)
      const options = {
        cluster,
        context: String(tokens),
        concurrency: String(concurrency),
        policy,
      }
      const prices = readPrices(context.env)
      const { request, notes } = await refusing(() =>
        buildRequest(model, options, { tables, current: noDaemon, prices }),
      )
      const outcome = placeModel(request, { shop: tables.chips.map((entry) => entry.chip) })
      const data = { notes, outcome: outcome as unknown as Record<string, unknown> }
      if (outcome.kind === 'no-machines') return { text: outcome.message, data }
      if (outcome.kind === 'memory-short') return { text: renderShortage(outcome.shortage), data }
      const text = renderOutcome(outcome, { request, worlds: request.worlds }, plansTold)
      return { text: [...notes, text].join('\n'), data }
    },
  })
}

async function refusing<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof UserError) throw new ToolRefusal(error.message, { cause: error })
    throw error
  }
}
