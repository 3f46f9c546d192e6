// Fetching, naming and removing models, in Ollama's words.
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { z } from 'zod'
import { isAliasName } from '../../core/serving/catalogue.ts'
import { answerPatiently } from '../answers/whole.ts'
import { ApiError, badField } from '../api-error.ts'
import type { GatewayApp, GatewayContext, GatewayParts } from '../context.ts'
import { EventStream } from '../event-stream.ts'
import { findModel } from '../find-model.ts'
import { parseBody, readJson } from '../read-json.ts'
import { namedRequest, nameIn } from './catalogue.ts'
import { ollamaError } from './error-shape.ts'
import { modelField } from './request.ts'

export interface PullProgress {
  readonly status: string
  readonly totalBytes?: number
  readonly doneBytes?: number
}

/** What is done to the files of this machine. */
export interface ModelActions {
  /** Fetches ORG/NAME; rejects with a sentence. */
  pull(
    name: string,
    on: { progress: (p: PullProgress) => void; signal: AbortSignal },
  ): Promise<void>
  /** Null when it is gone, otherwise a sentence why not. */
  remove(name: string): Promise<string | null>
}

const pullRequest = z.looseObject({
  ...namedRequest.shape,
  stream: z.boolean().nullish(),
})

const copyRequest = z.looseObject({ source: modelField, destination: modelField })

export function addModelRoutes(app: GatewayApp, parts: GatewayParts, actions: ModelActions): void {
  const { api, serving } = parts
  api.describe({
    method: 'post',
    path: '/api/pull',
    summary: 'Fetches a model from the hub onto this machine',
    body: pullRequest,
    responses: { 400: 'It is no name on the hub' },
  })
  api.describe({
    method: 'delete',
    path: '/api/delete',
    summary: 'Removes a model from this machine, or a name that stands for one',
    body: namedRequest,
    responses: { 404: 'No such model', 409: 'Why it stays' },
  })
  api.describe({
    method: 'post',
    path: '/api/copy',
    summary: 'Gives a model another name',
    body: copyRequest,
    responses: { 404: 'No such model' },
  })
  app.post('/api/pull', async (c) => {
    const body = parseBody(pullRequest, await readJson(c.env.incoming))
    return pull(c, { name: hubName(nameIn(body)), stream: body.stream !== false, parts, actions })
  })
  app.delete('/api/delete', async (c) => {
    const name = nameIn(parseBody(namedRequest, await readJson(c.env.incoming)))
    if (await serving.removeAlias(name.replace(/:latest$/, ''))) return c.body(null, 200)
    const { model } = findModel(parts, name)
    const refused = await actions.remove(model.name)
    if (refused !== null) throw new ApiError({ status: 409, message: refused, code: 'refused' })
    return c.body(null, 200)
  })
  app.post('/api/copy', async (c) => {
    const { source, destination } = parseBody(copyRequest, await readJson(c.env.incoming))
    const alias = destination.replace(/:latest$/, '')
    if (!isAliasName(alias)) throw badField('destination', `"${alias.slice(0, 60)}" is no name`)
    await serving.setAlias(alias, findModel(parts, source).model.name)
    return c.body(null, 200)
  })
}

/** "hf.co/org/name:latest" and "org/name" are names; anything with a scheme or a way up is not. */
function hubName(name: string): string {
  const bare = name.replace(/^(?:hf\.co|huggingface\.co)\//, '').replace(/:latest$/, '')
  if (/^[\w.-]+\/[\w.-]+$/.test(bare) && !bare.includes('..')) return bare
  if (/^[\w.-]+$/.test(bare) && !bare.includes('..')) return bare
  const message = `"${name.slice(0, 80)}" is no name on the hub; send ORG/NAME, such as mlx-community/Qwen3-8B-4bit`
  throw badField('model', message)
}

async function pull(
  c: GatewayContext,
  order: { name: string; stream: boolean; parts: GatewayParts; actions: ModelActions },
): Promise<Response> {
  const { name, parts, actions } = order
  const isHere = parts.serving.lookUp(name).kind === 'found'
  if (!isHere && !name.includes('/')) {
    const message = `"${name}" is not on this machine; to fetch it from the hub send ORG/NAME, such as mlx-community/Qwen3-8B-4bit`
    throw badField('model', message)
  }
  const left = new AbortController()
  c.env.outgoing.on('close', () => left.abort())
  const fetchIt = async (progress: (p: PullProgress) => void): Promise<void> => {
    if (!isHere) await actions.pull(name, { progress, signal: left.signal })
  }
  if (!order.stream) {
    return answerPatiently(c.env.outgoing, ollamaError, async () => {
      await fetchIt(() => undefined).catch(refuse)
      return { status: 'success' }
    })
  }
  let last: object = { status: 'pulling manifest' }
  const stream = new EventStream(c.env.outgoing, {
    contentType: 'application/x-ndjson',
    keepAlive: () => `${JSON.stringify(last)}\n`,
  })
  stream.open()
  stream.line(JSON.stringify(last))
  try {
    await fetchIt(({ status, totalBytes, doneBytes }) => {
      last = {
        status,
        ...(totalBytes === undefined ? {} : { total: totalBytes, completed: doneBytes ?? 0 }),
      }
      if (!stream.isCongested) stream.line(JSON.stringify(last))
    })
    stream.line('{"status":"success"}')
  } catch (error) {
    stream.line(JSON.stringify(ollamaError(asRefusal(error))))
  }
  stream.close()
  return RESPONSE_ALREADY_SENT
}

function asRefusal(error: unknown): ApiError {
  const message = error instanceof Error ? error.message : String(error)
  return new ApiError({ status: 502, message, code: 'pull_failed' })
}

function refuse(error: unknown): never {
  throw asRefusal(error)
}
