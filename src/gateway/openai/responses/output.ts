// Output items: what the model wrote, in its order, each under an id of its own.
import type { Block } from '../../answers/blocks.ts'
import { callId } from '../chat-completion.ts'
import { sealReasoning } from './reasoning.ts'
import type { CallTarget } from './tools.ts'

type Status = 'in_progress' | 'completed' | 'incomplete'

export interface TextPart {
  readonly type: 'output_text'
  text: string
  readonly annotations: readonly never[]
  logprobs: readonly object[]
}

export type OutputItem =
  | {
      readonly type: 'message'
      readonly id: string
      status: Status
      readonly role: 'assistant'
      readonly content: TextPart[]
    }
  | {
      readonly type: 'reasoning'
      readonly id: string
      status: Status
      readonly summary: readonly never[]
      readonly content: { readonly type: 'reasoning_text'; text: string }[]
      encrypted_content?: string
    }
  | {
      readonly type: 'function_call'
      readonly id: string
      status: Status
      readonly call_id: string
      readonly name: string
      readonly namespace?: string
      arguments: string
    }
  | {
      readonly type: 'custom_tool_call'
      readonly id: string
      status: Status
      readonly call_id: string
      readonly name: string
      readonly namespace?: string
      input: string
    }

export interface OutputOptions {
  readonly responseId: string
  readonly targetOf: (name: string) => CallTarget
  /** The client carries reasoning itself and asks for it sealed. */
  readonly seals: boolean
}

/** Makes items; the same answer gives the same ids, streamed or whole. */
export class OutputItems {
  readonly list: OutputItem[] = []
  readonly #options: OutputOptions
  readonly #tail: string
  #calls = 0

  constructor(options: OutputOptions) {
    this.#options = options
    this.#tail = options.responseId.slice(-24)
  }

  openMessage(): Extract<OutputItem, { type: 'message' }> {
    const part: TextPart = { type: 'output_text', text: '', annotations: [], logprobs: [] }
    return this.#add({
      type: 'message',
      id: this.#id('msg'),
      status: 'in_progress',
      role: 'assistant',
      content: [part],
    })
  }

  openReasoning(): Extract<OutputItem, { type: 'reasoning' }> {
    return this.#add({
      type: 'reasoning',
      id: this.#id('rs'),
      status: 'in_progress',
      summary: [],
      content: [{ type: 'reasoning_text', text: '' }],
    })
  }

  openCall(shownName: string): Extract<OutputItem, { type: 'function_call' | 'custom_tool_call' }> {
    const { kind, name, namespace } = this.#options.targetOf(shownName)
    const about = {
      status: 'in_progress' as const,
      call_id: callId(this.#options.responseId, 0, this.#calls++),
      name,
      ...(namespace === null ? {} : { namespace }),
    }
    return kind === 'custom'
      ? this.#add({ type: 'custom_tool_call', id: this.#id('ctc'), ...about, input: '' })
      : this.#add({ type: 'function_call', id: this.#id('fc'), ...about, arguments: '' })
  }

  /** The last thing that happens to an item. */
  close(item: OutputItem, status: Status): void {
    item.status = status
    if (item.type === 'reasoning' && this.#options.seals)
      item.encrypted_content = sealReasoning(item.content[0]?.text ?? '')
    if (item.type === 'custom_tool_call') item.input = freeformInput(item.input)
  }

  #add<Kind extends OutputItem>(item: Kind): Kind {
    this.list.push(item)
    return item
  }

  #id(prefix: string): string {
    return `${prefix}_${this.#tail}${this.list.length.toString().padStart(3, '0')}`
  }
}

/** The model wrote {"input": …} because it knows functions only; the client wants what is inside. */
function freeformInput(json: string): string {
  try {
    const { input } = JSON.parse(json) as { input?: unknown }
    return typeof input === 'string' ? input : json
  } catch {
    return json
  }
}

export function itemsOf(
  blocks: readonly Block[],
  options: OutputOptions & { ended: Status; logprobs: readonly object[] },
): readonly OutputItem[] {
  const items = new OutputItems(options)
  for (const [index, block] of blocks.entries()) {
    const item = toItem(items, block, options.logprobs)
    const isLast = index === blocks.length - 1
    const whole = block.type === 'call' ? block.whole : !isLast || options.ended === 'completed'
    items.close(item, whole ? 'completed' : 'incomplete')
  }
  return items.list
}

function toItem(items: OutputItems, block: Block, logprobs: readonly object[]): OutputItem {
  if (block.type === 'reasoning') {
    const item = items.openReasoning()
    for (const part of item.content) part.text = block.text
    return item
  }
  if (block.type === 'content') {
    const item = items.openMessage()
    for (const part of item.content) {
      part.text = block.text
      part.logprobs = logprobs
    }
    return item
  }
  const item = items.openCall(block.name)
  if (item.type === 'custom_tool_call') item.input = block.arguments
  else item.arguments = block.arguments
  return item
}
