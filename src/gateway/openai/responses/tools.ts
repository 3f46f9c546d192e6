// Tools of the Responses API. Models know functions only: freeform tools become functions with one text
// argument and are turned back on the way out, namespaces are folded into names.
import { z } from 'zod'
import type { JsonValue } from '../../../core/json.ts'
import type { ToolChoice } from '../../../core/serving/request.ts'
import { badField } from '../../api-error.ts'
import { parseBody } from '../../read-json.ts'
import { type Tool, type ToolUse, toolUse } from '../../tools.ts'
import type { ResponsesRequest } from './request.ts'

/** What a name in the model's call means to the client. */
export interface CallTarget {
  readonly kind: 'function' | 'custom'
  readonly name: string
  readonly namespace: string | null
}

export interface ResponseTools extends ToolUse {
  readonly targetOf: (name: string) => CallTarget
}

const functionTool = z.looseObject({
  name: z.string({ error: 'a tool needs a name' }),
  description: z.string().nullish(),
  parameters: z.json().nullish(),
})

const namespaceTool = z.looseObject({
  name: z.string({ error: 'a namespace needs a name' }),
  tools: z.array(z.looseObject({ type: z.string() })).default([]),
})

const freeform: JsonValue = {
  type: 'object',
  properties: { input: { type: 'string', description: 'The whole input, as plain text' } },
  required: ['input'],
  additionalProperties: false,
}

/** The name under which the model knows a tool of a namespace. */
export function foldedName(namespace: string | null, name: string): string {
  return namespace === null ? name : `${namespace}__${name}`
}

export function responseTools(request: ResponsesRequest): ResponseTools {
  const targets = new Map<string, CallTarget>()
  const tools: Tool[] = []
  const add = (tool: { type: string }, namespace: string | null, param: string): void => {
    // Tools that run on a provider's servers cannot run here; a model that is not shown them does without.
    if (tool.type !== 'function' && tool.type !== 'custom') return
    const { name, description, parameters } = parseBody(functionTool, tool, param)
    const shown = foldedName(namespace, name)
    targets.set(shown, { kind: tool.type, name, namespace })
    tools.push({
      name: shown,
      description: describe(tool, description),
      parameters: tool.type === 'custom' ? freeform : (parameters ?? undefined),
    })
  }
  for (const [index, tool] of (request.tools ?? []).entries()) {
    const param = `tools.${index}`
    if (tool.type !== 'namespace') add(tool, null, param)
    else {
      const { name, tools: inner } = parseBody(namespaceTool, tool, param)
      for (const [at, one] of inner.entries()) add(one, name, `${param}.tools.${at}`)
    }
  }
  const { choice, allowed } = choiceOf(request.tool_choice)
  const offered = allowed === null ? tools : tools.filter((tool) => allowed.has(tool.name))
  const parallel = request.parallel_tool_calls ?? true
  return {
    ...toolUse(offered, { choice, parallel, param: 'tools' }),
    targetOf: (name) => targets.get(name) ?? { kind: 'function', name, namespace: null },
  }
}

/** A freeform tool may come with a grammar; the model reads it as part of the description. */
function describe(
  tool: { type: string },
  description: string | null | undefined,
): string | undefined {
  const format = (tool as { format?: { definition?: unknown; syntax?: string } }).format
  if (tool.type !== 'custom' || typeof format?.definition !== 'string')
    return description ?? undefined
  return `${description ?? ''}\n\nThe input follows this ${format.syntax ?? ''} grammar:\n${format.definition}`.trim()
}

const named = z.looseObject({ name: z.string() })
const allowedTools = z.looseObject({
  mode: z.enum(['auto', 'required']),
  tools: z.array(z.looseObject({ name: z.string().optional() })),
})

function choiceOf(choice: ResponsesRequest['tool_choice']): {
  choice: ToolChoice
  allowed: ReadonlySet<string> | null
} {
  if (choice == null) return { choice: 'auto', allowed: null }
  if (choice === 'auto' || choice === 'none' || choice === 'required')
    return { choice, allowed: null }
  if (typeof choice === 'object') {
    if (choice.type === 'function' || choice.type === 'custom')
      return { choice: { name: parseBody(named, choice, 'tool_choice').name }, allowed: null }
    if (choice.type === 'allowed_tools') {
      const { mode, tools } = parseBody(allowedTools, choice, 'tool_choice')
      return { choice: mode, allowed: new Set(tools.flatMap(({ name }) => name ?? [])) }
    }
  }
  const shown = typeof choice === 'string' ? choice : choice.type
  const message = `"${shown.slice(0, 40)}" is no choice here: send auto, none, required, or name a function`
  throw badField('tool_choice', message, 'unsupported')
}
