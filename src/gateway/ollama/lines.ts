// Ollama's answers: a line of JSON per token, and a last one with figures.
import type { Part, Token, Usage } from '../../core/serving/request.ts'
import { type Block, Blocks, type CallBlock } from '../answers/blocks.ts'
import { joinParts } from '../answers/join-parts.ts'
import type { Ending } from '../answers/run.ts'
import type { StreamRenderer } from '../answers/stream.ts'
import type { WholeAnswer, WholeRenderer } from '../answers/whole.ts'
import type { ApiError } from '../api-error.ts'
import type { EventStream } from '../event-stream.ts'
import { logprobEntries } from '../openai/logprobs.ts'
import { ollamaError } from './error-shape.ts'
import { Timings } from './timings.ts'

/** Chats carry messages, prompts carry text; all else is the same. */
export type Shape = 'chat' | 'generate'

export interface LineHeader {
  readonly model: string
  readonly shape: Shape
  readonly now: () => string
  readonly id: string
}

interface Said {
  readonly content?: string
  readonly thinking?: string
  readonly calls?: readonly object[]
}

/** The fields in which a piece of the answer travels. */
function pieceFields(shape: Shape, { content = '', thinking, calls }: Said): object {
  const beside = thinking === undefined ? {} : { thinking }
  if (shape === 'generate') return { response: content, ...beside }
  const tool_calls = calls === undefined ? {} : { tool_calls: calls }
  return { message: { role: 'assistant', content, ...beside, ...tool_calls } }
}

export function emptyPiece(shape: Shape): object {
  return pieceFields(shape, {})
}

const doneReasons = { stop: 'stop', length: 'length', 'tool-calls': 'stop', cancelled: 'stop' }

/** Here arguments are an object, and a call that was cut off is only text. */
function toolCall(header: LineHeader, call: CallBlock, index: number): object | null {
  if (!call.whole) return null
  try {
    const parsed: unknown = JSON.parse(call.arguments === '' ? '{}' : call.arguments)
    const id = `call_${header.id}_${index}`
    return { id, function: { index, name: call.name, arguments: parsed } }
  } catch {
    return null
  }
}

export class AnswerLines implements StreamRenderer {
  readonly #stream: EventStream
  readonly #header: LineHeader
  readonly #model: string
  readonly #timings = new Timings()
  readonly #call = new Blocks()
  #calls = 0
  #ending: Ending | null = null

  constructor(stream: EventStream, header: LineHeader) {
    this.#stream = stream
    this.#header = header
    this.#model = JSON.stringify(header.model)
  }

  keepAlive(): string {
    return `${this.#lineText(emptyPiece(this.#header.shape))}\n`
  }

  accepted(): void {
    this.#timings.accepted()
  }

  begin(): void {
    // The first line comes with the first token.
  }

  tokens(_index: number, tokens: readonly Token[]): void {
    this.#timings.token()
    const logprobs = tokens[0]?.logprob === undefined ? [] : logprobEntries(tokens)
    this.#parts(joinParts(tokens), logprobs)
  }

  finish(_index: number, ending: Ending): void {
    this.#parts(ending.parts, [])
    for (const call of this.#call.calls) this.#flushCall(call)
    this.#ending = ending
  }

  complete(usage: Usage): void {
    const { shape } = this.#header
    const done_reason = doneReasons[this.#ending?.reason ?? 'stop']
    const figures = this.#timings.render(usage)
    this.#stream.line(this.#lineText({ ...emptyPiece(shape), done_reason, ...figures }, 'true'))
  }

  fail(error: ApiError): void {
    this.#stream.line(JSON.stringify(ollamaError(error)))
  }

  #parts(parts: readonly Part[], logprobs: readonly object[]): void {
    let pending = logprobs
    for (const part of parts) {
      if (part.type === 'content') {
        this.#say({ content: part.text }, pending)
        pending = []
      } else if (part.type === 'reasoning') this.#say({ thinking: part.text }, [])
      else this.#callPart(part)
    }
    if (pending.length > 0) this.#say({}, pending)
  }

  /** A call goes out when it is whole. */
  #callPart(part: Part): void {
    this.#call.push([part])
    const [call] = this.#call.calls
    if (call?.whole === true) this.#flushCall(call)
  }

  #flushCall(call: CallBlock): void {
    this.#call.list.length = 0
    const rendered = toolCall(this.#header, call, this.#calls)
    if (rendered === null) {
      this.#say({ content: call.arguments }, [])
      return
    }
    this.#calls += 1
    this.#say({ calls: [rendered] }, [])
  }

  #say(said: Said, logprobs: readonly object[]): void {
    const fields = pieceFields(this.#header.shape, said)
    this.#stream.line(this.#lineText(logprobs.length === 0 ? fields : { ...fields, logprobs }))
  }

  #lineText(fields: object, done: 'true' | 'false' = 'false'): string {
    const rest = JSON.stringify(fields).slice(1, -1)
    return `{"model":${this.#model},"created_at":"${this.#header.now()}",${rest},"done":${done}}`
  }
}

export function wholeLine(header: LineHeader, timings: Timings): WholeRenderer {
  return {
    fail: ollamaError,
    render([answer], usage) {
      const said = answer === undefined ? {} : wholeSaid(header, answer)
      const logprobs = logprobEntries(answer?.tokens ?? [])
      return {
        model: header.model,
        created_at: header.now(),
        ...pieceFields(header.shape, said),
        done: true,
        done_reason: doneReasons[answer?.ending.reason ?? 'stop'],
        ...(logprobs.length === 0 ? {} : { logprobs }),
        ...timings.render(usage),
      }
    },
  }
}

function wholeSaid(header: LineHeader, { blocks }: WholeAnswer): Said {
  const thinking = blocks.text('reasoning')
  const calls: object[] = []
  let content = ''
  for (const block of blocks.list as readonly Block[]) {
    if (block.type === 'content') content += block.text
    else if (block.type === 'call') {
      const rendered = toolCall(header, block, calls.length)
      if (rendered === null) content += block.arguments
      else calls.push(rendered)
    }
  }
  return {
    content,
    ...(thinking === '' ? {} : { thinking }),
    ...(calls.length === 0 ? {} : { calls }),
  }
}
