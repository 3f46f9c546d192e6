// A first look at a JSON schema that a client sent: is it one, is it of bearable size, does it lead anywhere.
// What its keywords mean is the worker's business, which refuses those it cannot keep by name.
import type { JsonValue } from '../core/json.ts'
import { badField } from './api-error.ts'

const schemaCharsMax = 262_144
const refsFollowedMax = 64

export function checkSchema(schema: JsonValue, param: string): void {
  if (schema === null || typeof schema !== 'object' || Array.isArray(schema))
    throw badField(param, 'A JSON schema is an object', 'invalid_schema')
  if (JSON.stringify(schema).length > schemaCharsMax) {
    const message = `A JSON schema may be ${schemaCharsMax} characters long at most`
    throw badField(param, message, 'invalid_schema')
  }
  for (const node of objectsIn(schema)) checkReference(schema, node, param)
}

type JsonObject = { readonly [key: string]: JsonValue }

function* objectsIn(value: JsonValue): Generator<JsonObject> {
  if (value === null || typeof value !== 'object') return
  if (!Array.isArray(value)) yield value as JsonObject
  for (const child of Object.values(value)) yield* objectsIn(child as JsonValue)
}

/** A reference must be local, lead somewhere, and not come back to itself without a step in between. */
function checkReference(root: JsonValue, node: JsonObject, param: string): void {
  let reference = node['$ref']
  for (let followed = 0; typeof reference === 'string'; followed++) {
    if (!reference.startsWith('#'))
      throw badField(
        param,
        `"$ref" to "${reference.slice(0, 80)}" leaves the schema`,
        'invalid_schema',
      )
    const target = resolvePointer(root, reference)
    if (target === undefined)
      throw badField(param, `"$ref" to "${reference.slice(0, 80)}" leads nowhere`, 'invalid_schema')
    if (followed > refsFollowedMax)
      throw badField(
        param,
        `"$ref" to "${reference.slice(0, 80)}" runs in a circle`,
        'invalid_schema',
      )
    reference =
      target !== null && typeof target === 'object' && !Array.isArray(target)
        ? (target as JsonObject)['$ref']
        : undefined
  }
}

function resolvePointer(root: JsonValue, reference: string): JsonValue | undefined {
  // Anchors and dynamic references have no slash; the worker knows them or refuses them.
  if (reference !== '#' && !reference.startsWith('#/')) return null
  let value: JsonValue | undefined = root
  for (const step of reference.slice(2).split('/').filter(Boolean)) {
    const key = decode(step).replaceAll('~1', '/').replaceAll('~0', '~')
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, key)) return undefined
    value = (value as JsonObject)[key]
  }
  return value
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
