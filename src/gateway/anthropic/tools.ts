// Anthropic's tools and the choice among them.
import type { ToolChoice } from '../../core/serving/request.ts'
import { badField } from '../api-error.ts'
import { type Tool, type ToolUse, toolUse } from '../tools.ts'
import type { CountRequest } from './request.ts'

export function anthropicTools({ tools, tool_choice: choice }: CountRequest): ToolUse {
  return toolUse((tools ?? []).map(toTool), {
    choice: choiceOf(choice),
    parallel: choice?.disable_parallel_tool_use !== true,
    param: 'tools',
  })
}

/** Tools with a type of their own run on Anthropic's servers, or have schemas that only its models know. */
function toTool(
  { type, name, description, input_schema }: NonNullable<CountRequest['tools']>[number],
  index: number,
): Tool {
  if (type != null && type !== 'custom') {
    const message = `The tool "${name.slice(0, 60)}" of type "${type.slice(0, 60)}" is known to Anthropic's own models alone; send tools with an input_schema`
    throw badField(`tools.${index}.type`, message, 'unsupported')
  }
  return {
    name,
    description: description ?? undefined,
    parameters: input_schema,
  }
}

function choiceOf(choice: CountRequest['tool_choice']): ToolChoice {
  if (choice?.type === 'any') return 'required'
  if (choice?.type === 'none') return 'none'
  if (choice?.type !== 'tool') return 'auto'
  if (choice.name === undefined)
    throw badField('tool_choice.name', 'A choice of type "tool" names the tool')
  return { name: choice.name }
}
