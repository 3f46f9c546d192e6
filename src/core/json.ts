// Values that survive a trip through JSON unchanged.

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue }

/** The same value always gives the same text, whatever order its keys were written in. */
export function canonicalJson(value: JsonValue): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  if (Array.isArray(value))
    return `[${value.map((item: JsonValue) => canonicalJson(item)).join(',')}]`
  const object = value as { readonly [key: string]: JsonValue }
  const keys = Object.keys(object).filter((key) => object[key] !== undefined)
  keys.sort()
  const fields = keys.map((key) => `${JSON.stringify(key)}:${canonicalJson(object[key] ?? null)}`)
  return `{${fields.join(',')}}`
}
