// The models that can be asked, loaded or not, and the names that stand for them. Answered from what this
// machine already knows: some clients show nothing at all until this has answered.
import type { ServedModel } from '../../core/serving/catalogue.ts'
import type { GatewayApp, GatewayParts } from '../context.ts'
import { findModel } from '../find-model.ts'

export function addModels(app: GatewayApp, parts: GatewayParts): void {
  parts.api.describe({
    method: 'get',
    path: '/v1/models',
    summary: 'Models that can be asked, loaded or not, in a shape that suits OpenAI and Anthropic',
  })
  parts.api.describe({
    method: 'get',
    path: '/v1/models/{name}',
    summary: 'One model',
    responses: { 404: 'No such model' },
  })
  app.get('/v1/models', (c) => {
    const data = listModels(parts)
    const first_id = data[0]?.id ?? null
    const last_id = data.at(-1)?.id ?? null
    return c.json({ object: 'list', data, has_more: false, first_id, last_id })
  })
  app.get('/v1/models/:name{.+}', (c) => {
    const name = c.req.param('name')
    return c.json(entry(name, findModel(parts, name)))
  })
}

function listModels({ serving }: GatewayParts): readonly ReturnType<typeof entry>[] {
  const list = serving.models().map((served) => entry(served.model.name, served))
  const listed = new Set(list.map(({ id }) => id))
  for (const [alias, target] of serving.aliases()) {
    const found = alias.endsWith('*') || listed.has(alias) ? null : serving.lookUp(target)
    if (found?.kind === 'found') list.push(entry(alias, found.served))
  }
  return list
}

function entry(id: string, { model, deployment }: ServedModel) {
  return {
    id,
    object: 'model',
    created: 0,
    owned_by: 'bushel',
    // Anthropic's fields.
    type: 'model',
    display_name: id,
    created_at: '1970-01-01T00:00:00Z',
    // Ours.
    loaded: deployment !== null,
    context_length: deployment?.contextTokens ?? model.contextTokens,
    ...(id === model.name ? {} : { alias_of: model.name }),
    ...(model.embeds === true ? { embeds: true } : {}),
  }
}
