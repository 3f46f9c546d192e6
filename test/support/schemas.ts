// JSON schemas of many kinds, made from a seed: what clients send, and a few that nobody can keep.
import type { JsonValue } from '../../src/core/json.ts'

export interface MadeSchema {
  readonly name: string
  readonly schema: JsonValue
  /** A keyword that must be refused by name; null for schemas that must be kept. */
  readonly refused: string | null
}

type Chance = () => number

/** Mulberry32: small, seeded, good enough to vary tests. */
function chanceFrom(seed: number): Chance {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

function pick<T>(chance: Chance, values: readonly T[]): T {
  return values[Math.floor(chance() * values.length)] as T
}

const words = [
  'name',
  'city',
  'count',
  'tags',
  'price',
  'state',
  'id',
  'notes',
  'size',
  'kind',
] as const

type Maker = (chance: Chance, depth: number) => JsonValue

const leaves: readonly Maker[] = [
  (chance) => ({ type: 'string', maxLength: 3 + Math.floor(chance() * 8) }),
  () => ({ type: 'string', minLength: 2, maxLength: 5 }),
  () => ({ type: 'string', pattern: '^[A-Z]{2}-[0-9]{1,3}$' }),
  () => ({ type: 'string', format: 'date' }),
  () => ({ type: 'string', format: 'uuid' }),
  () => ({ type: 'string', format: 'ipv4' }),
  (chance) => ({ enum: ['red', 'green', 'blue'].slice(0, 2 + Math.floor(chance() * 2)) }),
  () => ({ enum: [1, 'two', null, true] }),
  () => ({ const: 'fixed' }),
  () => ({ type: 'boolean' }),
  () => ({ type: 'null' }),
  (chance) => ({ type: 'integer', minimum: -5, maximum: 10 + Math.floor(chance() * 90) }),
  () => ({ type: 'integer', exclusiveMinimum: 0, maximum: 1000, multipleOf: 5 }),
  () => ({ type: 'number', minimum: 0, maximum: 1 }),
  () => ({ type: ['integer', 'null'], minimum: 0, maximum: 9 }),
]

const nests: readonly Maker[] = [
  (chance, depth) => objectSchema(chance, depth, false),
  (chance, depth) => objectSchema(chance, depth, true),
  (chance, depth) => ({ type: 'array', items: make(chance, depth - 1), minItems: 1, maxItems: 2 }),
  (chance, depth) => ({
    type: 'array',
    prefixItems: [make(chance, depth - 1), make(chance, 0)],
    items: false,
    minItems: 2,
  }),
  (chance, depth) => ({ anyOf: [make(chance, depth - 1), { type: 'boolean' }] }),
  () => ({
    oneOf: [
      { type: 'string', maxLength: 4 },
      { type: 'integer', minimum: 0, maximum: 99 },
    ],
  }),
  (chance, depth) => ({
    allOf: [
      { type: 'object', properties: { a: make(chance, depth - 1) }, required: ['a'] },
      { properties: { b: make(chance, 0) }, required: ['b'] },
    ],
    maxProperties: 2,
  }),
  () => ({
    type: 'object',
    patternProperties: { '^x[0-9]$': { type: 'integer', minimum: 0, maximum: 9 } },
    additionalProperties: false,
    maxProperties: 2,
  }),
  (chance) => ({
    type: 'object',
    additionalProperties: make(chance, 0),
    maxProperties: 1,
  }),
]

function make(chance: Chance, depth: number): JsonValue {
  const makers = depth <= 0 || chance() < 0.35 ? leaves : nests
  return pick(chance, makers)(chance, depth)
}

function objectSchema(chance: Chance, depth: number, optional: boolean): JsonValue {
  const names = words.filter(() => chance() < 0.3).slice(0, 3)
  const used = names.length === 0 ? [pick(chance, words)] : names
  return {
    type: 'object',
    properties: Object.fromEntries(used.map((name) => [name, make(chance, depth - 1)])),
    required: optional ? used.slice(0, 1) : used,
    additionalProperties: false,
  }
}

const written: readonly MadeSchema[] = [
  {
    name: 'a list that refers to itself',
    refused: null,
    schema: {
      $defs: {
        node: {
          type: 'object',
          properties: {
            value: { type: 'integer', minimum: 0, maximum: 9 },
            next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] },
          },
          required: ['value', 'next'],
          additionalProperties: false,
        },
      },
      $ref: '#/$defs/node',
    },
  },
  ...(
    [
      ['not', { not: { type: 'string' } }],
      ['uniqueItems', { type: 'array', items: { type: 'integer' }, uniqueItems: true }],
      ['if', JSON.parse('{"if":{"type":"string"},"then":{"maxLength":3}}') as object],
      ['contains', { type: 'array', contains: { type: 'string' } }],
      ['propertyNames', { type: 'object', propertyNames: { maxLength: 3 } }],
      ['dependentRequired', { type: 'object', dependentRequired: { a: ['b'] } }],
    ] as const
  ).map(([keyword, schema]): MadeSchema => ({
    name: keyword,
    schema: schema as unknown as JsonValue,
    refused: keyword,
  })),
]

export function madeSchemas(count: number, seed = 7): readonly MadeSchema[] {
  const chance = chanceFrom(seed)
  const made = [...written]
  for (let number = made.length; number < count; number++) {
    const schema = chance() < 0.7 ? objectSchema(chance, 2, chance() < 0.5) : make(chance, 2)
    made.push({ name: `made ${number}`, schema, refused: null })
  }
  return made
}
