// The HTTP face of a machine: one app with every protocol, health, the page and the cluster's own routes.
import { Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { LiveAnswers } from './answers/live.ts'
import { addAnthropicRoutes } from './anthropic/routes.ts'
import { ApiDocument } from './api-document.ts'
import { ApiError } from './api-error.ts'
import { addClusterRoutes, type ClusterActions } from './cluster/routes.ts'
import type { GatewayApp, GatewayEnv, GatewayParts } from './context.ts'
import { errorResponse } from './error-envelope.ts'
import { type GuardOptions, guard } from './guard.ts'
import { type ModelActions, addOllamaRoutes } from './ollama/routes.ts'
import { addOpenAiRoutes } from './openai/routes.ts'
import { addPage } from './page.ts'

export interface GatewayOptions extends Omit<GatewayParts, 'api' | 'live'> {
  readonly guard: GuardOptions
  readonly cluster: ClusterActions
  readonly models: ModelActions
  /** Folder of the built page; absent before the first build. */
  readonly pageDir: string
  readonly logError: (error: unknown, path: string) => void
}

export function createGateway(options: GatewayOptions): GatewayApp {
  const app = new Hono<GatewayEnv>()
  const parts: GatewayParts = { ...options, api: new ApiDocument(), live: new LiveAnswers() }
  app.use(async (c, next) => {
    // OpenAI's clients look for the first name, Anthropic's for the second.
    const id = `req_${parts.randomHex(12)}`
    c.env.outgoing.setHeader('x-request-id', id)
    c.env.outgoing.setHeader('request-id', id)
    await next()
  })
  app.use(guard(options.guard))
  addHealth(app, parts)
  addOpenAiRoutes(app, parts)
  addAnthropicRoutes(app, parts)
  addOllamaRoutes(app, parts, options.models)
  addClusterRoutes(app, parts, options.cluster)
  app.get('/openapi.json', (c) => c.json(parts.api.render(options.version)))
  addPage(app, options.pageDir)
  app.notFound((c) => errorResponse(c, noRoute(parts.api, c.req.method, c.req.path)))
  app.onError((error, c) => {
    const api = toKnownError(error)
    if (api === null) options.logError(error, c.req.path)
    const message = 'Bushel failed to handle this request; its log says why'
    return errorResponse(c, api ?? new ApiError({ status: 500, message }))
  })
  return app
}

function addHealth(app: GatewayApp, { api, serving, version }: GatewayParts): void {
  api.describe({ method: 'get', path: '/healthz', summary: 'Whether the daemon runs' })
  api.describe({
    method: 'get',
    path: '/readyz',
    summary: 'Whether a model can answer now',
    responses: { 503: 'No group is ready' },
  })
  api.describe({ method: 'get', path: '/openapi.json', summary: 'This document' })
  app.get('/healthz', (c) => c.json({ ok: true, version }))
  app.get('/readyz', (c) => {
    const ready = serving.isReady()
    return c.json({ ready }, ready ? 200 : 503)
  })
}

function noRoute(api: ApiDocument, method: string, path: string): ApiError {
  const allow = api.methodsOf(path)
  const hint = 'GET /openapi.json lists what there is'
  if (allow.length === 0)
    return new ApiError({ status: 404, message: `There is no ${method} ${path} here; ${hint}` })
  const message = `${path} takes ${allow.join(' or ')}, not ${method}; ${hint}`
  return new ApiError({ status: 405, message, code: 'method_not_allowed', allow })
}

function toKnownError(error: unknown): ApiError | null {
  if (error instanceof ApiError) return error
  if (error instanceof HTTPException)
    return new ApiError({ status: error.status, message: error.message })
  // The client went away in the middle of its own body.
  if ((error as { code?: string }).code === 'ECONNRESET')
    return new ApiError({ status: 400, message: 'The request was cut off' })
  return null
}
