// Ollama's chats and prompts, and the empty ones that only load or unload a model.
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Question } from '../../core/serving/request.ts'
import { type ResponseOrder, streamAnswer } from '../answers/stream.ts'
import { answerPatiently, answerWhole } from '../answers/whole.ts'
import { ApiError, toApiError } from '../api-error.ts'
import type { GatewayApp, GatewayContext, GatewayParts } from '../context.ts'
import { EventStream } from '../event-stream.ts'
import { findTalker } from '../find-model.ts'
import { questionSource } from '../question-source.ts'
import { parseBody, readJson } from '../read-json.ts'
import { ollamaError } from './error-shape.ts'
import { keepAliveMs } from './keep-alive.ts'
import { AnswerLines, type LineHeader, type Shape, emptyPiece, wholeLine } from './lines.ts'
import { chatQuestion, generateQuestion } from './question.ts'
import { type CommonRequest, chatRequest, generateRequest } from './request.ts'
import { Timings } from './timings.ts'

export function addAnswers(app: GatewayApp, parts: GatewayParts): void {
  const responses = { 400: 'It cannot be answered', 404: 'No such model', 429: 'Too many requests' }
  parts.api.describe({
    method: 'post',
    path: '/api/chat',
    summary: 'Answers a chat in lines of JSON; without messages it loads or unloads the model',
    body: chatRequest,
    responses,
  })
  parts.api.describe({
    method: 'post',
    path: '/api/generate',
    summary: 'Answers a prompt in lines of JSON; without a prompt it loads or unloads the model',
    body: generateRequest,
    responses,
  })
  app.post('/api/chat', async (c) => {
    const request = parseBody(chatRequest, await readJson(c.env.incoming))
    const messages = request.messages ?? []
    if (messages.length === 0) return loadOrUnload(c, parts, { request, shape: 'chat' })
    const question = chatQuestion(request, messages, questionSource(c, parts, request.model))
    return answer(c, parts, { request, question, shape: 'chat' })
  })
  app.post('/api/generate', async (c) => {
    const request = parseBody(generateRequest, await readJson(c.env.incoming))
    const prompt = request.prompt ?? ''
    if (prompt === '') return loadOrUnload(c, parts, { request, shape: 'generate' })
    const question = generateQuestion(request, prompt, questionSource(c, parts, request.model))
    return answer(c, parts, { request, question, shape: 'generate' })
  })
}

async function answer(
  c: GatewayContext,
  parts: GatewayParts,
  { request, question, shape }: { request: CommonRequest; question: Question; shape: Shape },
): Promise<Response> {
  const header = headerFor(parts, request.model, shape)
  const keptMs = keepAliveMs(request.keep_alive)
  const order: ResponseOrder = {
    serving: parts.serving,
    live: parts.live,
    id: header.id,
    name: request.model,
    asks: [{ prompt: 0, question }],
    response: c.env.outgoing,
    ...(keptMs === undefined ? {} : { keepAliveMs: keptMs }),
  }
  if (request.stream === false) {
    const timings = new Timings()
    return answerWhole(order, wholeLine(header, timings), timings)
  }
  let lines: AnswerLines | null = null
  const stream = new EventStream(c.env.outgoing, {
    contentType: 'application/x-ndjson',
    keepAlive: () => lines?.keepAlive() ?? '',
  })
  lines = new AnswerLines(stream, header)
  await streamAnswer(order, stream, lines)
  return RESPONSE_ALREADY_SENT
}

function headerFor(parts: GatewayParts, model: string, shape: Shape): LineHeader {
  const now = (): string => new Date(parts.wallMs()).toISOString()
  return { model, shape, now, id: parts.randomHex(6) }
}

/** An empty request: with keep_alive 0 the model goes, otherwise it comes. */
async function loadOrUnload(
  c: GatewayContext,
  parts: GatewayParts,
  { request, shape }: { request: CommonRequest; shape: Shape },
): Promise<Response> {
  const { model } = request
  const served = findTalker(parts, model)
  const keptMs = keepAliveMs(request.keep_alive)
  const done = (done_reason: string): object => {
    const { now } = headerFor(parts, model, shape)
    return { model, created_at: now(), ...emptyPiece(shape), done: true, done_reason }
  }
  if (keptMs === 0) {
    const isOwn = served.deployment?.keepAliveMs !== null
    if (!isOwn && !c.get('caller').admin) {
      const message = `${model} is kept loaded by its owner; this key may not unload it`
      throw new ApiError({ status: 403, message, code: 'not_admin' })
    }
    await parts.serving.unload(model)
    return c.json(done('unload'))
  }
  const left = new AbortController()
  c.env.outgoing.on('close', () => left.abort())
  return answerPatiently(c.env.outgoing, ollamaError, async () => {
    const asked = keptMs === undefined ? {} : { keepAliveMs: keptMs }
    const problem = await parts.serving.prepare(model, { ...asked, signal: left.signal })
    if (left.signal.aborted) return null
    if (problem !== null) throw toApiError(problem)
    return done('load')
  })
}
