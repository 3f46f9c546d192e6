// The model a client means, or 404 with the names that exist.
import type { ServedModel } from '../core/serving/catalogue.ts'
import { ApiError, badField } from './api-error.ts'
import type { GatewayParts } from './context.ts'

export function findModel({ serving }: Pick<GatewayParts, 'serving'>, name: string): ServedModel {
  const found = serving.lookUp(name)
  if (found.kind === 'found') return found.served
  const known =
    found.known.length === 0 ? 'none is there yet' : `there are: ${found.known.join(', ')}`
  const shown = name.slice(0, 120)
  const missing =
    found.target === null
      ? `The model "${shown}" does not exist here`
      : `"${shown}" is an alias of "${found.target}", which does not exist here`
  const message = `${missing}; ${known}`
  throw new ApiError({ status: 404, message, code: 'model_not_found', param: 'model' })
}

/** For routes that want words: vectors are asked for elsewhere. */
export function findTalker(parts: Pick<GatewayParts, 'serving'>, name: string): ServedModel {
  const served = findModel(parts, name)
  if (served.model.embeds !== true) return served
  const message = `${served.model.name} is an embedding model and answers nothing; ask it at /v1/embeddings`
  throw badField('model', message, 'unsupported')
}
