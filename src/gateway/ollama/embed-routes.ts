// Ollama's embeddings, new and old.
import { z } from 'zod'
import { limits } from '../../core/limits.ts'
import type { Prompt } from '../../core/serving/request.ts'
import { answerPatiently } from '../answers/whole.ts'
import { badField } from '../api-error.ts'
import type { GatewayApp, GatewayContext, GatewayParts } from '../context.ts'
import { type Embedded, embed, refuseTalker } from '../embed.ts'
import { findModel } from '../find-model.ts'
import { parseBody, readJson } from '../read-json.ts'
import { wellFormed } from '../well-formed.ts'
import { ollamaError } from './error-shape.ts'
import { keepAliveField, keepAliveMs } from './keep-alive.ts'
import { modelField } from './request.ts'
import { nanoseconds } from './timings.ts'

const many = `at most ${limits.embeddingsPerRequestMax} inputs at once`

const embedRequest = z.looseObject({
  model: modelField,
  input: z.union([z.string(), z.array(z.string()).max(limits.embeddingsPerRequestMax, many)], {
    error: `must be a text or a list of texts; ${many}`,
  }),
  /** As Ollama does: a text that is too long is cut, unless a client would rather know. */
  truncate: z.boolean().default(true),
  keep_alive: keepAliveField,
})

const oldRequest = z.looseObject({
  model: modelField,
  prompt: z.string(),
  keep_alive: keepAliveField,
})

export function addEmbed(app: GatewayApp, parts: GatewayParts): void {
  const responses = { 400: 'The model is no embedding model', 404: 'No such model' }
  parts.api.describe({
    method: 'post',
    path: '/api/embed',
    summary: 'Turns texts into vectors, with an embedding model',
    body: embedRequest,
    responses,
  })
  parts.api.describe({
    method: 'post',
    path: '/api/embeddings',
    summary: 'The older form of /api/embed: one text',
    body: oldRequest,
    responses,
  })
  app.post('/api/embed', async (c) => {
    const request = parseBody(embedRequest, await readJson(c.env.incoming))
    const startMs = performance.now()
    const inputs = typeof request.input === 'string' ? [request.input] : request.input
    return answer(
      c,
      parts,
      { request, inputs, cuts: request.truncate },
      ({ vectors, promptTokens }) => ({
        model: request.model,
        embeddings: vectors.map((vector) => [...vector]),
        total_duration: nanoseconds(performance.now() - startMs),
        load_duration: 0,
        prompt_eval_count: promptTokens,
      }),
    )
  })
  app.post('/api/embeddings', async (c) => {
    const request = parseBody(oldRequest, await readJson(c.env.incoming))
    return answer(c, parts, { request, inputs: [request.prompt], cuts: true }, ({ vectors }) => ({
      embedding: [...(vectors[0] ?? [])],
    }))
  })
}

function answer(
  c: GatewayContext,
  parts: GatewayParts,
  asked: {
    request: { model: string; keep_alive?: z.infer<typeof keepAliveField> }
    inputs: readonly string[]
    cuts: boolean
  },
  render: (embedded: Embedded) => object,
): Promise<Response> {
  const { model, keep_alive } = asked.request
  refuseTalker(findModel(parts, model))
  const inputs = asked.inputs.map((text, index): Prompt => {
    if (text === '') throw badField(`input.${index}`, 'An empty text has no meaning to embed')
    return { kind: 'text', text: wellFormed(text, `input.${index}`) }
  })
  const keptMs = keepAliveMs(keep_alive)
  return answerPatiently(c.env.outgoing, ollamaError, async () => {
    const embedded = await embed({
      serving: parts.serving,
      name: model,
      inputs,
      cacheScope: c.get('caller').scope,
      response: c.env.outgoing,
      cuts: asked.cuts,
      ...(keptMs === undefined ? {} : { keepAliveMs: keptMs }),
    })
    return embedded === null ? null : render(embedded)
  })
}
