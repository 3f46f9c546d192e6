// What shape an answer must have, as OpenAI's clients say it, and our two additions: regex and grammar.
import { z } from 'zod'
import { assertNever } from '../../core/assert.ts'
import type { JsonValue } from '../../core/json.ts'
import type { Grammar } from '../../core/serving/request.ts'
import { badField } from '../api-error.ts'
import { checkSchema } from '../check-schema.ts'

const kinds = ['text', 'json_object', 'json_schema', 'regex', 'grammar'] as const
const patternCharsMax = 65_536

export const responseFormat = z.looseObject({
  type: z.enum(kinds, { error: `must be one of ${kinds.join(', ')}` }),
  /** Chat completions put name and schema in here; responses put them beside the type. */
  json_schema: z
    .looseObject({ name: z.string().optional(), schema: z.json().optional() })
    .optional(),
  schema: z.json().optional(),
  pattern: z.string().max(patternCharsMax).optional(),
  grammar: z.string().max(patternCharsMax).optional(),
})

export function toGrammar(
  format: z.infer<typeof responseFormat> | null | undefined,
  param: string,
): Grammar | null {
  if (format == null) return null
  switch (format.type) {
    case 'text':
      return null
    case 'json_object':
      return { kind: 'json-object' }
    case 'json_schema': {
      const schema = (format.json_schema?.schema ?? format.schema) as JsonValue | undefined
      if (schema === undefined)
        throw badField(param, 'A format of type json_schema needs a schema', 'invalid_schema')
      checkSchema(schema, param)
      return { kind: 'json-schema', schema }
    }
    case 'regex':
      if (format.pattern === undefined)
        throw badField(param, 'A format of type regex needs a "pattern"')
      return { kind: 'regex', pattern: format.pattern }
    case 'grammar':
      if (format.grammar === undefined)
        throw badField(param, 'A format of type grammar needs a "grammar" in Lark syntax')
      return { kind: 'lark', text: format.grammar }
    default:
      return assertNever(format.type)
  }
}
