// OpenAI's embeddings: texts or token ids in, vectors out.
import { z } from 'zod'
import { limits } from '../../core/limits.ts'
import type { Prompt } from '../../core/serving/request.ts'
import { answerPatiently } from '../answers/whole.ts'
import { badField } from '../api-error.ts'
import type { GatewayApp, GatewayParts } from '../context.ts'
import { type Embedded, embed, refuseTalker } from '../embed.ts'
import { findModel } from '../find-model.ts'
import { parseBody, readJson } from '../read-json.ts'
import { wellFormed } from '../well-formed.ts'
import { modelField } from './chat-request.ts'
import { openAiError } from './error-shape.ts'

const ids = z.array(z.number().int().min(0).max(0xffff_ffff)).min(1)
const many = `at most ${limits.embeddingsPerRequestMax} inputs at once`

const embeddingRequest = z.looseObject({
  model: modelField,
  input: z.union(
    [
      z.string(),
      ids,
      z.array(z.string()).min(1).max(limits.embeddingsPerRequestMax, many),
      z.array(ids).min(1).max(limits.embeddingsPerRequestMax, many),
    ],
    { error: `must be a text, token ids, or a list of either; ${many}` },
  ),
  encoding_format: z.enum(['float', 'base64']).nullish(),
  dimensions: z.number().int().min(1).max(65_536).nullish(),
})

export function addEmbeddings(app: GatewayApp, parts: GatewayParts): void {
  parts.api.describe({
    method: 'post',
    path: '/v1/embeddings',
    summary: 'Turns texts into vectors, with an embedding model',
    body: embeddingRequest,
    responses: { 400: 'The model is no embedding model, or the input cannot be used' },
  })
  app.post('/v1/embeddings', async (c) => {
    const request = parseBody(embeddingRequest, await readJson(c.env.incoming))
    refuseTalker(findModel(parts, request.model))
    const inputs = inputsOf(request.input)
    return answerPatiently(c.env.outgoing, openAiError, async () => {
      const embedded = await embed({
        serving: parts.serving,
        name: request.model,
        inputs,
        cacheScope: c.get('caller').scope,
        response: c.env.outgoing,
      })
      return embedded === null ? null : embeddingList(request, embedded)
    })
  })
}

function embeddingList(
  { model, dimensions, encoding_format }: z.infer<typeof embeddingRequest>,
  { vectors, promptTokens }: Embedded,
): object {
  return {
    object: 'list',
    data: vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: render(shorten(vector, dimensions), encoding_format),
    })),
    model,
    usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
  }
}

function inputsOf(input: z.infer<typeof embeddingRequest>['input']): readonly Prompt[] {
  if (typeof input === 'string') return [textPrompt(input, 'input')]
  if (typeof input[0] === 'number') return [{ kind: 'ids', ids: input as number[] }]
  return (input as (string | number[])[]).map((one, index) =>
    typeof one === 'string' ? textPrompt(one, `input.${index}`) : { kind: 'ids', ids: one },
  )
}

function textPrompt(text: string, param: string): Prompt {
  if (text === '') throw badField(param, 'An empty text has no meaning to embed')
  return { kind: 'text', text: wellFormed(text, param) }
}

/** The first dimensions, made a unit vector again, as models trained for it allow. */
function shorten(vector: Float32Array, dimensions: number | null | undefined): Float32Array {
  if (dimensions == null || dimensions === vector.length) return vector
  if (dimensions > vector.length) {
    const message = `This model's vectors have ${vector.length} dimensions; ${dimensions} were asked for`
    throw badField('dimensions', message)
  }
  const cut = vector.slice(0, dimensions)
  const length = Math.hypot(...cut)
  return length === 0 ? cut : cut.map((value) => value / length)
}

function render(vector: Float32Array, format: 'float' | 'base64' | null | undefined): unknown {
  if (format !== 'base64') return [...vector]
  const bytes = Buffer.alloc(vector.length * 4)
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4)
  return bytes.toString('base64')
}
