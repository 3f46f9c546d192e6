// Ollama's view of the models: what there is, what is loaded, what each can do.
import { z } from 'zod'
import type { ServedModel } from '../../core/serving/catalogue.ts'
import { groupsSeen } from '../../core/cluster/groups.ts'
import type { GatewayApp, GatewayParts } from '../context.ts'
import { findModel } from '../find-model.ts'
import { parseBody, readJson } from '../read-json.ts'
import { modelField } from './request.ts'

/** What this side of the API is like; clients ask for a least version before they use a feature. */
const ollamaVersion = '0.33.0'
/** Go's zero time: Ollama's own client shows it as "Never". */
const never = '0001-01-01T00:00:00Z'
const farAheadMs = 100 * 365 * 86_400_000

export const namedRequest = z
  .looseObject({ model: modelField.optional(), name: modelField.optional() })
  .refine((body) => body.model !== undefined || body.name !== undefined, {
    error: 'name a model; GET /api/tags lists them',
  })

/** Older clients call the field "name". */
export function nameIn(body: z.infer<typeof namedRequest>): string {
  return body.model ?? body.name ?? ''
}

export function addCatalogue(app: GatewayApp, parts: GatewayParts): void {
  const { api } = parts
  api.describe({
    method: 'get',
    path: '/api/version',
    summary: 'The version of Ollama this speaks',
  })
  api.describe({ method: 'get', path: '/api/tags', summary: 'Models that can be asked' })
  api.describe({ method: 'get', path: '/api/ps', summary: 'Models that are loaded' })
  api.describe({
    method: 'post',
    path: '/api/show',
    summary: 'What a model is and can do',
    body: namedRequest,
    responses: { 404: 'No such model' },
  })
  app.get('/api/version', (c) => c.json({ version: ollamaVersion, bushel: parts.version }))
  app.get('/api/tags', (c) => c.json({ models: listModels(parts) }))
  app.get('/api/ps', (c) => c.json({ models: listLoaded(parts) }))
  app.post('/api/show', async (c) => {
    const name = nameIn(parseBody(namedRequest, await readJson(c.env.incoming)))
    return c.json(showModel(findModel(parts, name)))
  })
}

function listModels({ serving }: GatewayParts): readonly object[] {
  const list = serving.models().map((served) => tagEntry(served.model.name, served))
  for (const [alias, target] of serving.aliases()) {
    const found = alias.endsWith('*') ? null : serving.lookUp(target)
    if (found?.kind === 'found') list.push(tagEntry(alias, found.served))
  }
  return list
}

/** Ollama's names always have a tag. */
function tagged(name: string): string {
  return name.includes(':') ? name : `${name}:latest`
}

function tagEntry(name: string, served: ServedModel): object {
  const shown = tagged(name)
  return {
    name: shown,
    model: shown,
    modified_at: never,
    size: served.model.weightsBytes,
    digest: served.model.digest,
    details: detailsOf(served),
  }
}

function detailsOf({ model }: ServedModel): object {
  return {
    parent_model: '',
    format: 'mlx',
    family: model.architecture,
    families: [model.architecture],
    parameter_size: parameterSize(model.parameters),
    quantization_level: '',
  }
}

function parameterSize(parameters: number): string {
  if (parameters >= 1e9) return `${(parameters / 1e9).toFixed(1)}B`
  return `${(parameters / 1e6).toFixed(1)}M`
}

function listLoaded({ serving, machine, wallMs }: GatewayParts): readonly object[] {
  const groups = groupsSeen(machine.state).filter((group) => group.status === 'ready')
  return serving.models().flatMap((served) => {
    const { deployment } = served
    const own = groups.filter((group) => group.deployment === deployment?.id)
    if (deployment === null || own.length === 0) return []
    const bytes = own
      .flatMap((group) => group.ranks)
      .reduce((sum, rank) => sum + (rank.holding?.activeBytes ?? 0), 0)
    const { keepAliveMs } = deployment
    const idleMs = serving.idleMs(deployment.id) ?? 0
    const leftMs = keepAliveMs === null ? farAheadMs : Math.max(0, keepAliveMs - idleMs)
    return [
      {
        ...tagEntry(served.model.name, served),
        size: bytes,
        size_vram: bytes,
        expires_at: new Date(wallMs() + leftMs).toISOString(),
        context_length: deployment.contextTokens,
      },
    ]
  })
}

function showModel(served: ServedModel): object {
  const { model, deployment } = served
  const { architecture } = model
  const contextTokens = deployment?.contextTokens ?? model.contextTokens
  const talks = ['completion', 'tools', ...(model.reasons === true ? ['thinking'] : [])]
  return {
    license: '',
    modelfile: `FROM ${model.name}\n`,
    parameters: Object.entries(model.defaults)
      .map(([name, value]) => `${snakeCase(name)} ${String(value)}`)
      .join('\n'),
    template: '',
    details: detailsOf(served),
    model_info: {
      'general.architecture': architecture,
      'general.basename': model.name,
      'general.parameter_count': model.parameters,
      [`${architecture}.context_length`]: contextTokens,
      [`${architecture}.block_count`]: model.layers,
    },
    capabilities: model.embeds === true ? ['embedding'] : talks,
    modified_at: never,
  }
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
