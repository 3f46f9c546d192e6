// OpenAI's routes.
import type { GatewayApp, GatewayParts } from '../context.ts'
import { addCancel } from './cancel.ts'
import { addChat, addCompletions } from './chat-routes.ts'
import { addEmbeddings } from './embeddings.ts'
import { addModels } from './models.ts'
import { addResponses } from './responses/routes.ts'

export function addOpenAiRoutes(app: GatewayApp, parts: GatewayParts): void {
  addModels(app, parts)
  addChat(app, parts)
  addCompletions(app, parts)
  addResponses(app, parts)
  addEmbeddings(app, parts)
  addCancel(app, parts)
}
