// Ending an answer from outside its own connection.
import { ApiError } from '../api-error.ts'
import type { GatewayApp, GatewayContext, GatewayParts } from '../context.ts'

export function addCancel(app: GatewayApp, { api, live }: GatewayParts): void {
  const summary = 'Ends an answer that this machine is giving; its reader gets an error'
  const responses = { 404: 'No such answer is being given here' }
  api.describe({ method: 'post', path: '/v1/cancel/{id}', summary, responses })
  api.describe({ method: 'delete', path: '/v1/requests/{id}', summary, responses })
  const cancel = (c: GatewayContext, id: string): Response => {
    if (live.cancel(id)) return c.json({ id, cancelled: true })
    const message = `No answer "${id.slice(0, 80)}" is being given here; ask the machine that took the request`
    throw new ApiError({ status: 404, message, code: 'not_found' })
  }
  app.post('/v1/cancel/:id', (c) => cancel(c, c.req.param('id')))
  app.delete('/v1/requests/:id', (c) => cancel(c, c.req.param('id')))
}
