// Tools and the choice among them, as chat completions spell them.
import { z } from 'zod'
import type { ToolChoice } from '../../core/serving/request.ts'
import { badField } from '../api-error.ts'
import { type Tool, type ToolUse, toolUse } from '../tools.ts'

const functionSchema = z.looseObject({
  name: z.string({ error: 'a tool needs a name' }),
  description: z.string().nullish(),
  parameters: z.json().nullish(),
})

export const toolSchema = z.looseObject({
  type: z.string().default('function'),
  function: functionSchema.optional(),
})

const named = z.looseObject({ name: z.string() })
const modes = ['none', 'auto', 'required'] as const

export const toolChoiceSchema = z.union(
  [
    z.enum(modes),
    z.looseObject({ type: z.literal('function'), function: named }),
    z.looseObject({
      type: z.literal('allowed_tools'),
      allowed_tools: z.looseObject({
        mode: z.enum(['auto', 'required']),
        tools: z.array(z.looseObject({ function: named.optional() })),
      }),
    }),
  ],
  { error: 'must be none, auto, required, or name a function' },
)

export function chatTools(request: {
  tools?: readonly z.infer<typeof toolSchema>[] | null | undefined
  tool_choice?: z.infer<typeof toolChoiceSchema> | null | undefined
  parallel_tool_calls?: boolean | null | undefined
}): ToolUse {
  const tools = (request.tools ?? []).map(toTool)
  const wish = { parallel: request.parallel_tool_calls ?? true, param: 'tools' }
  const choice = request.tool_choice ?? 'auto'
  if (typeof choice === 'string') return toolUse(tools, { ...wish, choice })
  if (choice.type === 'function')
    return toolUse(tools, { ...wish, choice: { name: choice.function.name } })
  const { mode, tools: allowed } = choice.allowed_tools
  const names = new Set(allowed.flatMap((tool) => tool.function?.name ?? []))
  const offered = tools.filter((tool) => names.has(tool.name))
  return toolUse(offered, { ...wish, choice: mode satisfies ToolChoice })
}

function toTool(tool: z.infer<typeof toolSchema>, index: number): Tool {
  if (tool.type !== 'function' || tool.function === undefined) {
    const message = `Tools of type "${tool.type.slice(0, 40)}" do not exist here; send functions`
    throw badField(`tools.${index}.type`, message, 'unsupported')
  }
  const { name, description, parameters } = tool.function
  return {
    name,
    description: description ?? undefined,
    parameters: parameters ?? undefined,
  }
}
