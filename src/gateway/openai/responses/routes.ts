// The Responses API: answers, streamed, whole or in the background, and the ones that were kept.
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type ResponseOrder, streamAnswer } from '../../answers/stream.ts'
import { answerWhole } from '../../answers/whole.ts'
import { ApiError, badField } from '../../api-error.ts'
import type { GatewayApp, GatewayContext, GatewayParts } from '../../context.ts'
import { EventStream } from '../../event-stream.ts'
import { questionSource } from '../../question-source.ts'
import { parseBody, readJson } from '../../read-json.ts'
import { openAiError } from '../error-shape.ts'
import { runInBackground } from './background.ts'
import { ResponseEvents } from './events.ts'
import { type Conversation, conversationOf } from './conversation.ts'
import { responseQuestion } from './question.ts'
import { type ResponsesRequest, responsesRequest } from './request.ts'
import { type ResponseObject, responseHead } from './response-object.ts'
import { ResponseStore } from './store.ts'
import { addStoredRoutes } from './stored-routes.ts'
import { responseTools } from './tools.ts'
import { wholeResponse } from './whole.ts'

export function addResponses(app: GatewayApp, parts: GatewayParts): void {
  const store = new ResponseStore()
  parts.api.describe({
    method: 'post',
    path: '/v1/responses',
    summary: 'Answers items with items, whole, streamed or in the background',
    body: responsesRequest,
    responses: { 400: 'The request cannot be answered', 404: 'No such model' },
  })
  app.post('/v1/responses', async (c) => {
    const request = parseBody(responsesRequest, await readJson(c.env.incoming))
    refuseWhatIsNotThere(request)
    const asked = ask(c, parts, { request, store })
    const keep = (response: ResponseObject): void => {
      if (request.store !== false) store.put(response, asked.conversation)
    }
    if (request.background === true) return c.json(runInBackground({ ...asked, keep }))
    if (request.stream !== true) {
      const renderer = wholeResponse({ ...asked, keep })
      return answerWhole(asked.order, { fail: openAiError, ...renderer })
    }
    let events: ResponseEvents | null = null
    const stream = new EventStream(c.env.outgoing, { keepAlive: () => events?.keepAlive() ?? '' })
    events = new ResponseEvents(stream, { ...asked, onEnd: keep })
    await streamAnswer(asked.order, stream, events)
    return RESPONSE_ALREADY_SENT
  })
  addStoredRoutes(app, parts, store)
}

function ask(
  c: GatewayContext,
  parts: GatewayParts,
  { request, store }: { request: ResponsesRequest; store: ResponseStore },
) {
  const source = questionSource(c, parts, request.model)
  const scope = source.cacheScope
  const tools = responseTools(request)
  const conversation: Conversation = conversationOf(request, { store, scope })
  const question = responseQuestion(request, { ...source, items: conversation.input, tools })
  const responseId = `resp_${parts.randomHex(16)}`
  const order: ResponseOrder = {
    serving: parts.serving,
    live: parts.live,
    id: responseId,
    name: request.model,
    asks: [{ prompt: 0, question }],
    response: c.env.outgoing,
  }
  return {
    order,
    conversation,
    responseId,
    head: responseHead(request, { id: responseId, createdAt: Math.floor(source.nowMs / 1000) }),
    targetOf: tools.targetOf,
    // Whoever keeps the conversation itself needs the reasoning back in a form that travels.
    seals:
      request.store === false || request.include?.includes('reasoning.encrypted_content') === true,
  }
}

function refuseWhatIsNotThere(request: ResponsesRequest): void {
  for (const field of ['conversation', 'prompt'] as const) {
    if (request[field] == null) continue
    const message = `"${field}" is kept on OpenAI's servers; send the items themselves, or previous_response_id`
    throw badField(field, message, 'unsupported')
  }
  if (request.n != null && request.n !== 1) throw badField('n', 'A response has one answer')
  if (request.background !== true) return
  if (request.store === false)
    throw badField('store', 'A response in the background must be stored to be found again')
  if (request.stream === true) {
    const message = 'A response in the background cannot be streamed; ask for it when it is done'
    throw new ApiError({ status: 400, message, param: 'stream', code: 'unsupported' })
  }
}
