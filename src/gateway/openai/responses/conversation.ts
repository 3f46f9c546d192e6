// The items of a request with all that came before them.
import { badField } from '../../api-error.ts'
import type { Item, ResponsesRequest } from './request.ts'
import type { ResponseStore } from './store.ts'

export interface Conversation {
  readonly scope: string
  readonly input: readonly Item[]
  readonly added: readonly Item[]
}

export function conversationOf(
  request: ResponsesRequest,
  { store, scope }: { store: ResponseStore; scope: string },
): Conversation {
  const given: readonly Item[] =
    typeof request.input === 'string'
      ? [{ type: 'message', role: 'user', content: request.input }]
      : (request.input ?? [])
  const added = given.map((item, index) => resolve(item, { store, scope, index }))
  return { scope, added, input: [...earlier(request, { store, scope }), ...added] }
}

function earlier(
  { previous_response_id: id }: ResponsesRequest,
  { store, scope }: { store: ResponseStore; scope: string },
): readonly Item[] {
  if (id == null) return []
  const stored = store.get(id, scope)
  if (stored === null) {
    const message = `The response "${id.slice(0, 80)}" is not kept here; responses live in the memory of the machine that gave them, as long as there is room`
    throw badField('previous_response_id', message, 'previous_response_not_found')
  }
  const { status } = stored.response
  if (status === 'queued' || status === 'in_progress') {
    const message = `The response "${id}" is not finished yet; continue it when it is`
    throw badField('previous_response_id', message)
  }
  return [...stored.input, ...(stored.response.output as readonly Item[])]
}

function resolve(
  item: Item,
  { store, scope, index }: { store: ResponseStore; scope: string; index: number },
): Item {
  if (item.type !== 'item_reference') return item
  const found = item.id == null ? null : store.item(item.id, scope)
  if (found !== null) return found
  const message = `The item "${String(item.id).slice(0, 80)}" is not kept here; send it whole`
  throw badField(`input.${index}.id`, message)
}
