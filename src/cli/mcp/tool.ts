// What a tool for agents is. Whoever has something to offer them, the planner or the doctor, makes one
// of these and adds it to the list in tools.ts; the server knows nothing else about it.
import { z } from 'zod'

export interface ToolAnswer {
  /** What a person would read. */
  readonly text: string
  /** The same as data. */
  readonly data: Readonly<Record<string, unknown>>
}

export interface McpTool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly input: z.ZodRawShape
  readonly run: (args: unknown) => Promise<ToolAnswer>
}

/** A request that cannot be met as it stands: told to the agent, with what to do instead. */
export class ToolRefusal extends Error {
  override readonly name = 'ToolRefusal'
}

/** Ties a tool's input to what its body receives, so that the body works with known data. */
export function defineTool<Shape extends z.ZodRawShape>(tool: {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly input: Shape
  readonly run: (args: z.infer<z.ZodObject<Shape>>) => ToolAnswer | Promise<ToolAnswer>
}): McpTool {
  const input = z.object(tool.input)
  return { ...tool, run: async (args) => tool.run(input.parse(args)) }
}
