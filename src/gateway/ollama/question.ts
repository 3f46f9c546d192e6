// Ollama's chats and prompts as questions.
import type { ChatMessage, Prompt, Question } from '../../core/serving/request.ts'
import { badField } from '../api-error.ts'
import { joinLeadingSystem } from '../join-system.ts'
import { chatTools } from '../openai/chat-tools.ts'
import type { QuestionSource } from '../question-source.ts'
import { samplingFor } from '../sampling.ts'
import { noTools } from '../tools.ts'
import { wellFormed } from '../well-formed.ts'
import {
  type ChatRequest,
  type CommonRequest,
  type GenerateRequest,
  grammarOf,
  refuseImages,
  samplingWishes,
  stopStrings,
  thinkVariables,
  tokensMax,
} from './request.ts'

type Messages = NonNullable<ChatRequest['messages']>

export function chatQuestion(
  request: ChatRequest,
  messages: Messages,
  from: QuestionSource,
): Question {
  return toQuestion(request, from, {
    kind: 'chat',
    messages: joinLeadingSystem(messages.map(toMessage)),
    ...chatTools({ tools: request.tools }),
    variables: thinkVariables(request),
    nowMs: from.nowMs,
  })
}

export function generateQuestion(
  request: GenerateRequest,
  prompt: string,
  from: QuestionSource,
): Question {
  refuseWhatIsNotThere(request)
  const text = wellFormed(prompt, 'prompt')
  if (request.raw === true) return toQuestion(request, from, { kind: 'text', text })
  const system = wellFormed(request.system ?? '', 'system')
  return toQuestion(request, from, {
    kind: 'chat',
    messages: [
      ...(system === '' ? [] : [{ role: 'system', content: system }]),
      { role: 'user', content: text },
    ],
    ...noTools,
    variables: thinkVariables(request),
    nowMs: from.nowMs,
  })
}

function toQuestion(request: CommonRequest, from: QuestionSource, prompt: Prompt): Question {
  return {
    prompt,
    sampling: samplingFor(samplingWishes(request), {
      defaults: from.model.defaults,
      seed: from.seed,
    }),
    tokensMax: tokensMax(request),
    stop: stopStrings(request),
    ignoreEos: false,
    logprobs: request.logprobs === true ? (request.top_logprobs ?? 0) : null,
    grammar: grammarOf(request),
    cacheScope: from.cacheScope,
  }
}

function toMessage(message: Messages[number], index: number): ChatMessage {
  const param = `messages.${index}`
  refuseImages(message.images, `${param}.images`)
  return {
    role: message.role,
    content: wellFormed(message.content ?? '', `${param}.content`),
    ...(message.thinking == null ? {} : { reasoning: wellFormed(message.thinking, param) }),
    ...(message.tool_name == null ? {} : { name: message.tool_name }),
    ...(message.tool_call_id == null ? {} : { toolCallId: message.tool_call_id }),
    ...(message.tool_calls == null || message.tool_calls.length === 0
      ? {}
      : {
          toolCalls: message.tool_calls.map((call) => ({
            ...(call.id === undefined ? {} : { id: call.id }),
            function: {
              name: call.function.name,
              arguments: call.function.arguments ?? {},
            },
          })),
        }),
  }
}

function refuseWhatIsNotThere(request: GenerateRequest): void {
  refuseImages(request.images, 'images')
  const refuse = (field: string, instead: string): never => {
    throw badField(field, `"${field}" is not supported; ${instead}`, 'unsupported')
  }
  if (request.suffix != null && request.suffix !== '') refuse('suffix', 'send a prompt alone')
  if (request.template != null && request.template !== '')
    refuse('template', "the model's own template is used; send raw: true for none")
  if (request.context != null && request.context.length > 0)
    refuse('context', 'send the conversation to /api/chat')
}
