// Other names for models: what clients insist on asking for, and what they get.
import { z } from 'zod'
import { isAliasName } from '../../core/serving/catalogue.ts'
import { ApiError, badField } from '../api-error.ts'
import type { GatewayApp, GatewayParts } from '../context.ts'
import { findModel } from '../find-model.ts'
import { parseBody, readJson } from '../read-json.ts'

const aliasRequest = z.object({
  name: z.string().min(1).max(200),
  model: z.string().min(1).max(500),
})

export function addAliasRoutes(app: GatewayApp, parts: GatewayParts): void {
  const { api, serving } = parts
  const path = '/cluster/aliases'
  api.describe({ method: 'get', path, summary: 'Names that stand for models' })
  api.describe({
    method: 'post',
    path,
    summary: 'Gives a model another name; a star at its end stands for anything',
    body: aliasRequest,
    responses: { 400: 'It cannot be a name', 404: 'No such model' },
  })
  api.describe({
    method: 'delete',
    path: `${path}/{name}`,
    summary: 'Takes a name away',
    responses: { 404: 'No such name' },
  })
  app.get(path, (c) => c.json(Object.fromEntries(serving.aliases())))
  app.post(path, async (c) => {
    const { name, model } = parseBody(aliasRequest, await readJson(c.env.incoming))
    if (!isAliasName(name)) throw badField('name', `"${name.slice(0, 60)}" cannot be a name`)
    const target = findModel(parts, model).model.name
    await serving.setAlias(name, target)
    return c.json({ name, model: target })
  })
  app.delete(`${path}/:name{.+}`, async (c) => {
    const name = c.req.param('name')
    if (await serving.removeAlias(name)) return c.json({ name, removed: true })
    const message = `There is no alias "${name.slice(0, 60)}"`
    throw new ApiError({ status: 404, message, code: 'not_found' })
  })
}
