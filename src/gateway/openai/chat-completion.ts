// A chat answer in one piece.
import type { Usage } from '../../core/serving/request.ts'
import type { WholeAnswer, WholeRenderer } from '../answers/whole.ts'
import { openAiError } from './error-shape.ts'
import { logprobEntries } from './logprobs.ts'
import { finishReasons, usageOf } from './usage.ts'

export interface ChatHeader {
  readonly id: string
  readonly created: number
  /** The name the client asked for, echoed. */
  readonly model: string
  readonly system_fingerprint: string
}

/** Unlike any other call of this conversation, and the same in a stream and in one piece. */
export function callId(answerId: string, choice: number, index: number): string {
  return `call_${answerId.slice(-12)}_${choice}_${index}`
}

export function chatCompletion(header: ChatHeader): WholeRenderer {
  return {
    fail: openAiError,
    render(answers: readonly WholeAnswer[], usage: Usage) {
      const { id, created, model, system_fingerprint } = header
      return {
        id,
        object: 'chat.completion',
        created,
        model,
        system_fingerprint,
        choices: answers.map((answer, index) => choiceOf(header, answer, index)),
        usage: usageOf(usage),
      }
    },
  }
}

function choiceOf({ id }: ChatHeader, answer: WholeAnswer, index: number): object {
  const { blocks, tokens, ending } = answer
  const content = blocks.text('content')
  const reasoning = blocks.text('reasoning')
  const logprobs = logprobEntries(tokens)
  const calls = blocks.calls.map((call, number) => ({
    id: callId(id, index, number),
    type: 'function',
    function: { name: call.name, arguments: call.arguments },
  }))
  return {
    index,
    message: {
      role: 'assistant',
      content: calls.length > 0 && content === '' ? null : content,
      refusal: null,
      ...(reasoning === '' ? {} : { reasoning_content: reasoning, reasoning }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    },
    logprobs: logprobs.length === 0 ? null : { content: logprobs },
    finish_reason: finishReasons[ending.reason],
  }
}
