// What can be done with a response that was kept.
import { ApiError } from '../../api-error.ts'
import type { GatewayApp, GatewayContext, GatewayParts } from '../../context.ts'
import type { ResponseStore } from './store.ts'

export function addStoredRoutes(
  app: GatewayApp,
  { api, live }: GatewayParts,
  store: ResponseStore,
): void {
  const path = '/v1/responses/{id}'
  const responses = { 404: 'Not kept on this machine' }
  api.describe({ method: 'get', path, summary: 'A response that was kept', responses })
  api.describe({ method: 'delete', path, summary: 'Forgets a response', responses })
  api.describe({
    method: 'get',
    path: '/v1/responses/{id}/input_items',
    summary: 'What a response was an answer to',
    responses,
  })
  api.describe({
    method: 'post',
    path: '/v1/responses/{id}/cancel',
    summary: 'Ends a response that is still being written',
    responses: { ...responses, 409: 'It is already over' },
  })
  const find = (c: GatewayContext, id: string) => {
    const stored = store.get(id, c.get('caller').scope)
    if (stored !== null) return stored
    const message = `The response "${id.slice(0, 80)}" is not kept here; responses live in the memory of the machine that gave them`
    throw new ApiError({ status: 404, message, code: 'not_found' })
  }
  app.get('/v1/responses/:id', (c) => c.json(find(c, c.req.param('id')).response))
  app.delete('/v1/responses/:id', (c) => {
    const { response } = find(c, c.req.param('id'))
    live.cancel(response.id)
    store.remove(response.id, c.get('caller').scope)
    return c.json({ id: response.id, object: 'response.deleted', deleted: true })
  })
  app.get('/v1/responses/:id/input_items', (c) => {
    const { input } = find(c, c.req.param('id'))
    const first_id = input[0]?.id ?? null
    const last_id = input.at(-1)?.id ?? null
    return c.json({ object: 'list', data: input, has_more: false, first_id, last_id })
  })
  app.post('/v1/responses/:id/cancel', (c) => {
    const id = c.req.param('id')
    if (live.cancel(id)) {
      const stored = store.get(id, c.get('caller').scope)
      return c.json(stored?.response ?? { id, object: 'response', status: 'cancelled' })
    }
    const { status } = find(c, id).response
    const message = `The response "${id}" is already ${status}`
    throw new ApiError({ status: 409, message, code: 'not_running' })
  })
}
