// Chat completions and the older completions.
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { ResponseOrder } from '../answers/stream.ts'
import { streamAnswer } from '../answers/stream.ts'
import { answerWhole } from '../answers/whole.ts'
import type { GatewayApp, GatewayContext, GatewayParts } from '../context.ts'
import { EventStream, type Progress } from '../event-stream.ts'
import { type QuestionSource, questionSource } from '../question-source.ts'
import { parseBody, readJson } from '../read-json.ts'
import { ChatChunks } from './chat-chunks.ts'
import { type ChatHeader, chatCompletion } from './chat-completion.ts'
import { chatAsks, chatRequest } from './chat-request.ts'
import { completionAsks, completionRequest } from './completions-request.ts'
import { CompletionChunks, completion } from './completions-response.ts'

const refusals = {
  400: 'The request cannot be answered; the message says what to change',
  404: 'No such model',
  429: 'Too many requests; Retry-After says when to come back',
}

export function addChat(app: GatewayApp, parts: GatewayParts): void {
  parts.api.describe({
    method: 'post',
    path: '/v1/chat/completions',
    summary: 'Answers a chat, whole or as a stream of server-sent events',
    body: chatRequest,
    responses: refusals,
  })
  app.post('/v1/chat/completions', async (c) => {
    const request = parseBody(chatRequest, await readJson(c.env.incoming))
    const source = questionSource(c, parts, request.model)
    const asks = chatAsks(request, source)
    const header = headerFor(parts, { prefix: 'chatcmpl-', model: request.model, source })
    const order = orderFor(c, parts, { header, asks })
    if (request.stream !== true) return answerWhole(order, chatCompletion(header))
    const stream = new EventStream(c.env.outgoing, { keepAlive: commentAlive })
    const includeUsage = request.stream_options?.include_usage === true
    const choices = asks.length
    await streamAnswer(order, stream, new ChatChunks(stream, header, { choices, includeUsage }))
    return RESPONSE_ALREADY_SENT
  })
}

export function addCompletions(app: GatewayApp, parts: GatewayParts): void {
  parts.api.describe({
    method: 'post',
    path: '/v1/completions',
    summary: 'Continues plain text or token ids',
    body: completionRequest,
    responses: refusals,
  })
  app.post('/v1/completions', async (c) => {
    const request = parseBody(completionRequest, await readJson(c.env.incoming))
    const source = questionSource(c, parts, request.model)
    const asks = completionAsks(request, source)
    const echoes = asks.map(({ echo }) => echo)
    const header = headerFor(parts, { prefix: 'cmpl-', model: request.model, source })
    const order = orderFor(c, parts, { header, asks })
    if (request.stream !== true) return answerWhole(order, completion(header, echoes))
    const stream = new EventStream(c.env.outgoing, { keepAlive: commentAlive })
    const includeUsage = request.stream_options?.include_usage === true
    const chunks = new CompletionChunks(stream, header, { echoes, includeUsage })
    await streamAnswer(order, stream, chunks)
    return RESPONSE_ALREADY_SENT
  })
}

/** A comment: clients skip it, and whatever counts silence on the way counts from here again. */
function commentAlive(progress: Progress | null): string {
  return progress === null
    ? ': keep-alive\n\n'
    : `: keep-alive prompt ${progress.done}/${progress.total}\n\n`
}

function headerFor(
  { randomHex, version }: GatewayParts,
  from: { prefix: string; model: string; source: QuestionSource },
): ChatHeader {
  return {
    id: `${from.prefix}${randomHex(12)}`,
    created: Math.floor(from.source.nowMs / 1000),
    model: from.model,
    system_fingerprint: `bushel-${version}`,
  }
}

function orderFor(
  c: GatewayContext,
  { serving, live }: GatewayParts,
  { header, asks }: { header: ChatHeader; asks: ResponseOrder['asks'] },
): ResponseOrder {
  return { serving, live, id: header.id, name: header.model, asks, response: c.env.outgoing }
}
