// Anthropic's routes: messages, and how many tokens they have.
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type ResponseOrder, streamAnswer } from '../answers/stream.ts'
import { answerPatiently, answerWhole } from '../answers/whole.ts'
import { badField } from '../api-error.ts'
import type { GatewayApp, GatewayContext, GatewayParts } from '../context.ts'
import { countTokens } from '../count.ts'
import { EventStream } from '../event-stream.ts'
import { questionSource } from '../question-source.ts'
import { parseBody, readJson } from '../read-json.ts'
import { anthropicError } from './error-shape.ts'
import { MessageEvents, ping } from './events.ts'
import { wholeMessage } from './message.ts'
import { anthropicQuestion, countQuestion } from './question.ts'
import { countRequest, messagesRequest } from './request.ts'

export function addAnthropicRoutes(app: GatewayApp, parts: GatewayParts): void {
  parts.api.describe({
    method: 'post',
    path: '/v1/messages',
    summary: 'Answers messages, whole or as a stream of events',
    body: messagesRequest,
    query: { beta: 'Accepted and without effect' },
    responses: {
      400: 'The request cannot be answered',
      404: 'No such model',
      429: 'Too many requests',
    },
  })
  parts.api.describe({
    method: 'post',
    path: '/v1/messages/count_tokens',
    summary: 'Counts the tokens that messages would have',
    body: countRequest,
    query: { beta: 'Accepted and without effect' },
    responses: { 400: 'The messages cannot be rendered', 404: 'No such model' },
  })
  app.post('/v1/messages', async (c) => {
    checkVersion(c)
    const request = parseBody(messagesRequest, await readJson(c.env.incoming))
    const question = anthropicQuestion(request, questionSource(c, parts, request.model))
    const header = { id: `msg_${parts.randomHex(12)}`, model: request.model }
    const order: ResponseOrder = {
      serving: parts.serving,
      live: parts.live,
      id: header.id,
      name: request.model,
      asks: [{ prompt: 0, question }],
      response: c.env.outgoing,
    }
    if (request.stream !== true) return answerWhole(order, wholeMessage(header))
    const stream = new EventStream(c.env.outgoing, { keepAlive: () => ping })
    await streamAnswer(order, stream, new MessageEvents(stream, header))
    return RESPONSE_ALREADY_SENT
  })
  app.post('/v1/messages/count_tokens', async (c) => {
    checkVersion(c)
    const request = parseBody(countRequest, await readJson(c.env.incoming))
    const question = countQuestion(request, questionSource(c, parts, request.model))
    const response = c.env.outgoing
    return answerPatiently(response, anthropicError, async () => {
      const { serving } = parts
      const tokens = await countTokens({ serving, name: request.model, question, response })
      return tokens === null ? null : { input_tokens: tokens }
    })
  })
}

/** Any date will do, and none too: only what is no version at all is a mistake worth telling. */
function checkVersion(c: GatewayContext): void {
  const version = c.req.header('anthropic-version')
  if (version === undefined || /^\d{4}-\d{2}-\d{2}$/.test(version)) return
  const message = `anthropic-version "${version.slice(0, 40)}" is no version; send one like 2023-06-01`
  throw badField('anthropic-version', message)
}
