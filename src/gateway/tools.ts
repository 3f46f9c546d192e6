// Tools as every protocol means them: a name, what it is for, and a JSON schema of its arguments.
import type { JsonValue } from '../core/json.ts'
import type { ToolChoice } from '../core/serving/request.ts'
import { badField } from './api-error.ts'
import { checkSchema } from './check-schema.ts'

export interface Tool {
  readonly name: string
  readonly description: string | undefined
  /** Absent: a tool without arguments. */
  readonly parameters: JsonValue | undefined
}

export interface ToolUse {
  readonly tools: readonly JsonValue[]
  readonly toolChoice: ToolChoice
  readonly parallelToolCalls: boolean
}

/** Beyond what any client sends: every definition is part of the prompt. */
const toolsMax = 512
const nameShape = /^[A-Za-z0-9_.:/-]{1,128}$/

/** Tools in the shape that chat templates read. */
export function toolUse(
  tools: readonly Tool[],
  wish: { choice: ToolChoice; parallel: boolean; param: string },
): ToolUse {
  const { param } = wish
  if (tools.length > toolsMax) throw badField(param, `At most ${toolsMax} tools can be offered`)
  const names = new Set<string>()
  for (const [index, tool] of tools.entries()) {
    const place = `${param}.${index}`
    if (!nameShape.test(tool.name))
      throw badField(`${place}.name`, `"${tool.name.slice(0, 60)}" is no name for a tool`)
    if (names.has(tool.name)) throw badField(place, `Two tools are called "${tool.name}"`)
    names.add(tool.name)
    if (tool.parameters !== undefined) checkSchema(tool.parameters, `${place}.parameters`)
  }
  checkChoice(wish.choice, names)
  return {
    // A model that must not call is not shown what it could call.
    tools: wish.choice === 'none' ? [] : tools.map(templateTool),
    toolChoice: wish.choice,
    parallelToolCalls: wish.parallel,
  }
}

export const noTools: ToolUse = { tools: [], toolChoice: 'auto', parallelToolCalls: true }

function templateTool({ name, description, parameters }: Tool): JsonValue {
  return {
    type: 'function',
    function: {
      name,
      ...(description === undefined ? {} : { description }),
      parameters: parameters ?? { type: 'object', properties: {} },
    },
  }
}

function checkChoice(choice: ToolChoice, names: ReadonlySet<string>): void {
  if (choice === 'required' && names.size === 0)
    throw badField('tool_choice', 'A tool call is required, but no tools are offered')
  if (typeof choice === 'object' && !names.has(choice.name)) {
    const offered = names.size === 0 ? 'none is offered' : `offered are: ${[...names].join(', ')}`
    throw badField('tool_choice', `There is no tool "${choice.name.slice(0, 60)}"; ${offered}`)
  }
}
