// The OpenAI routes: models and chat completions.
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { collectAnswer, streamAnswer } from '../answer.ts'
import type { ApiDocument } from '../api-document.ts'
import { ApiError } from '../api-error.ts'
import type { GatewayApp, GatewayParts } from '../context.ts'
import { EventStream } from '../event-stream.ts'
import { parseBody, readJson } from '../read-json.ts'
import { chatRequest, toQuestion } from './chat-request.ts'
import { ChatChunks, chatCompletion } from './chat-response.ts'

export function addOpenAiRoutes(app: GatewayApp, parts: GatewayParts): void {
  describe(parts.api)
  app.get('/v1/models', (c) => c.json({ object: 'list', data: modelList(parts) }))
  app.get('/v1/models/:name{.+}', (c) => {
    const name = c.req.param('name')
    const found = findModel(parts, name)
    return c.json(modelEntry(found.name, parts))
  })
  app.post('/v1/chat/completions', async (c) => {
    const request = parseBody(chatRequest, await readJson(c.env.incoming))
    const model = findModel(parts, request.model)
    const nowMs = parts.wallMs()
    const question = toQuestion(request, {
      model,
      nowMs,
      seed: BigInt(`0x${parts.randomHex(7)}`).toString(),
      cacheScope: c.req.header('authorization') ?? '',
    })
    const header = {
      id: `chatcmpl-${parts.randomHex(12)}`,
      created: Math.floor(nowMs / 1000),
      model: request.model,
    }
    const response = c.env.outgoing
    const order = { serving: parts.serving, name: request.model, question, response }
    if (request.stream !== true) {
      const answer = await collectAnswer(order)
      return answer === null ? RESPONSE_ALREADY_SENT : c.json(chatCompletion(header, answer))
    }
    const stream = new EventStream(response, { keepAlive: () => ': keep-alive\n\n' })
    const includeUsage = request.stream_options?.include_usage === true
    await streamAnswer(order, stream, new ChatChunks(stream, header, { includeUsage }))
    return RESPONSE_ALREADY_SENT
  })
}

/** The model a client means, or 404 with the names that exist. */
export function findModel(
  parts: GatewayParts,
  name: string,
): ReturnType<GatewayParts['serving']['models']>[number]['model'] {
  const found = parts.serving.lookUp(name)
  if (found.kind === 'found') return found.served.model
  const known =
    found.known.length === 0 ? 'none is there yet' : `there are: ${found.known.join(', ')}`
  const message = `The model "${name.slice(0, 120)}" does not exist here; ${known}`
  throw new ApiError({ status: 404, message, code: 'model_not_found', param: 'model' })
}

function modelList(parts: GatewayParts): readonly object[] {
  return parts.serving.models().map(({ model }) => modelEntry(model.name, parts))
}

function modelEntry(name: string, parts: GatewayParts): object {
  const served = parts.serving.models().find(({ model }) => model.name === name)
  return {
    id: name,
    object: 'model',
    created: 0,
    owned_by: 'bushel',
    loaded: served?.deployment != null,
    context_length: served?.model.contextTokens,
  }
}

function describe(api: ApiDocument): void {
  api.describe({
    method: 'get',
    path: '/v1/models',
    summary: 'Models that can be asked, loaded or not',
  })
  api.describe({
    method: 'get',
    path: '/v1/models/{name}',
    summary: 'One model',
    responses: { 404: 'No such model' },
  })
  api.describe({
    method: 'post',
    path: '/v1/chat/completions',
    summary: 'Answers a chat, whole or as a stream of server-sent events',
    body: chatRequest,
    responses: {
      400: 'The request cannot be answered; the message says what to change',
      404: 'No such model',
      429: 'Too many requests; Retry-After says when to come back',
    },
  })
}
