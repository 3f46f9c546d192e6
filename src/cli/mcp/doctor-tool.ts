// The doctor as a tool for agents: what is wrong with machines and cables, and the next step.
import { z } from 'zod'
import { renderDiagnosis } from '../../core/doctor/render.ts'
import { diagnose } from '../../core/doctor/run-doctor.ts'
import { type CliContext, UserError } from '../command.ts'
import { collectFacts } from '../machines/facts-source.ts'
import { type McpTool, ToolRefusal, defineTool } from './tool.ts'

export function doctorTool(context: Pick<CliContext, 'env' | 'programDir'>): McpTool {
  return defineTool({
    name: 'doctor',
    title: 'Look for faults',
    description:
      'Checks the machines of this cluster (or this machine alone, when no daemon runs) for faults in cables, ports, RDMA, bridges, memory limits and versions, and says the next step for each. Changes nothing.',
    input: {
      all: z.boolean().default(false).describe('tell also what is right'),
    },
    run: async ({ all }) => {
      const notes: string[] = []
      const out: CliContext['out'] = {
        result: () => undefined,
        json: () => undefined,
        note: (text) => void notes.push(text),
        isTty: false,
      }
      try {
        const facts = await collectFacts({ ...context, out }, {})
        const diagnosis = diagnose(facts)
        const text = [...notes, renderDiagnosis(diagnosis, { verbose: all })].join('\n')
        return { text, data: { notes, diagnosis } }
      } catch (error) {
        if (error instanceof UserError) throw new ToolRefusal(error.message, { cause: error })
        throw error
      }
    },
  })
}
