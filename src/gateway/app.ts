// The HTTP face of a machine: one app with every protocol, health, the page and the cluster's own routes.
import { Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { ApiDocument } from './api-document.ts'
import { ApiError } from './api-error.ts'
import { addClusterRoutes, type ClusterActions } from './cluster/routes.ts'
import type { GatewayApp, GatewayEnv, GatewayParts } from './context.ts'
import { type GuardOptions, guard } from './guard.ts'
import { openAiError } from './openai/error-shape.ts'
import { addOpenAiRoutes } from './openai/routes.ts'
import { addPage } from './page.ts'

export interface GatewayOptions extends Omit<GatewayParts, 'api'> {
  readonly guard: GuardOptions
  readonly cluster: ClusterActions
  /** Folder of the built page; absent before the first build. */
  readonly pageDir: string
  readonly logError: (error: unknown, path: string) => void
}

export function createGateway(options: GatewayOptions): GatewayApp {
  const app = new Hono<GatewayEnv>()
  app.use(guard(options.guard))
  app.get('/healthz', (c) => c.json({ ok: true, version: options.version }))
  app.get('/readyz', (c) => {
    const ready = options.serving.isReady()
    return c.json({ ready }, ready ? 200 : 503)
  })
  const parts: GatewayParts = { ...options, api: new ApiDocument() }
  addOpenAiRoutes(app, parts)
  addClusterRoutes(app, parts, options.cluster)
  app.get('/openapi.json', (c) => c.json(parts.api.render(options.version)))
  addPage(app, options.pageDir)
  app.notFound((c) => {
    const message = `There is no ${c.req.method} ${c.req.path} here; GET /openapi.json lists what there is`
    return c.json(openAiError(new ApiError({ status: 404, message })), 404)
  })
  app.onError((error, c) => {
    const api = toKnownError(error)
    if (api === null) options.logError(error, c.req.path)
    const shown =
      api ??
      new ApiError({
        status: 500,
        message: 'Bushel failed to handle this request; its log says why',
      })
    if (shown.retryAfterSeconds !== null) c.header('retry-after', String(shown.retryAfterSeconds))
    return c.json(openAiError(shown), shown.status as ContentfulStatusCode)
  })
  return app
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
