// Ollama's routes, and the extra listener that greets as Ollama does.
import { Hono } from 'hono'
import type { GatewayApp, GatewayEnv, GatewayParts } from '../context.ts'
import { addAnswers } from './answer-routes.ts'
import { addCatalogue } from './catalogue.ts'
import { addEmbed } from './embed-routes.ts'
import { type ModelActions, addModelRoutes } from './model-routes.ts'

export type { ModelActions } from './model-routes.ts'

export function addOllamaRoutes(app: GatewayApp, parts: GatewayParts, actions: ModelActions): void {
  addCatalogue(app, parts)
  addAnswers(app, parts)
  addEmbed(app, parts)
  addModelRoutes(app, parts, actions)
}

/** The same gateway for Ollama's own port: there "/" is no page, clients ask it whether Ollama runs. */
export function ollamaListener(gateway: GatewayApp): GatewayApp {
  const app = new Hono<GatewayEnv>()
  app.get('/', async (c) => {
    // The guard has the first word here too.
    const answered = await gateway.fetch(
      new Request(new URL('/healthz', c.req.url), c.req.raw),
      c.env,
    )
    return answered.ok ? c.text('Ollama is running') : answered
  })
  app.all('*', (c) => gateway.fetch(c.req.raw, c.env))
  return app
}
