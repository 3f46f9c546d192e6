// Requests made from our own OpenAPI document and then spoiled: every route gets bodies that nearly fit.
import assert from 'node:assert/strict'
import * as fc from 'fast-check'

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

interface Schema {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly enum?: readonly Json[]
  readonly const?: Json
  readonly additionalProperties?: Schema | boolean
}

interface Operation {
  readonly requestBody?: {
    readonly content: { readonly 'application/json': { readonly schema: Schema } }
  }
}

interface Route {
  readonly method: string
  readonly path: string
  readonly schema: Schema | null
}

export interface FuzzReport {
  readonly requests: number
  readonly statuses: ReadonlyMap<number, number>
}

/** Routes that end the daemon, fetch from the world, or load the model anew with another context. */
const leftAlone = new Set(['/cluster/stop', '/cluster/leave', '/api/pull', '/cluster/load'])
const answerMsMax = 10_000

const odd = fc.oneof(
  fc.constantFrom<Json>(
    null,
    true,
    0,
    -1,
    1.5,
    1e18,
    -1e308,
    '',
    '\u0000',
    '\u202e',
    '\ud800',
    '../../etc',
    '__proto__',
    [],
    {},
  ),
  fc.string({ maxLength: 20 }),
  fc.integer(),
  fc.double({ noNaN: true }),
  fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>,
)

/** What a schema asks for, with something odd in it now and then. */
function fitting(schema: Schema, model: string, depth: number): fc.Arbitrary<Json> {
  const plain = fits(schema, model, depth)
  return depth > 4
    ? plain
    : fc.oneof({ weight: 12, arbitrary: plain }, { weight: 1, arbitrary: odd })
}

function fits(schema: Schema, model: string, depth: number): fc.Arbitrary<Json> {
  const within = (inner: Schema): fc.Arbitrary<Json> => fitting(inner, model, depth + 1)
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  const branches = schema.anyOf ?? schema.oneOf
  if (branches !== undefined) return fc.oneof(...branches.map(within))
  switch (schema.type) {
    case 'object':
      return objectOf(schema, { model, depth, within })
    case 'array':
      return fc.array(depth > 5 ? odd : within(schema.items ?? {}), { maxLength: 3 })
    case 'string':
      return fc.oneof(
        fc.string({ maxLength: 12 }),
        fc.constantFrom('user', 'text', 'function', 'json_schema', 'auto'),
      )
    case 'integer':
      return fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer())
    case 'number':
      return fc.double({ min: 0, max: 2, noNaN: true })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case undefined:
    default:
      return odd
  }
}

function objectOf(
  { properties = {}, required = [] }: Schema,
  {
    model,
    depth,
    within,
  }: { model: string; depth: number; within: (inner: Schema) => fc.Arbitrary<Json> },
): fc.Arbitrary<Json> {
  const fields = Object.fromEntries(
    Object.entries(properties).map(([name, inner]) => [
      name,
      // Most requests reach a model, or little behind the door is tried at all.
      name === 'model' && depth === 0
        ? fc.oneof(
            { weight: 9, arbitrary: fc.constant<Json>(model) },
            { weight: 1, arbitrary: odd },
          )
        : within(inner),
    ]),
  )
  return fc.record(fields, {
    requiredKeys: [...required].filter((name) => name in fields),
  })
}

async function routesOf(url: string): Promise<readonly Route[]> {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, Operation>>
  }
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    leftAlone.has(path)
      ? []
      : Object.entries(operations).map(([method, operation]) => ({
          method: method.toUpperCase(),
          path,
          schema: operation.requestBody?.content['application/json'].schema ?? null,
        })),
  )
}

/** Sends for so long; fails on any 5xx that is not about readiness, on silence, and on what is no JSON. */
export async function fuzz(
  url: string,
  { model, forMs, seed }: { model: string; forMs: number; seed: number },
): Promise<FuzzReport> {
  const routes = await routesOf(url)
  const cases = fc.constantFrom(...routes).chain((route) => {
    const path = fc.stringMatching(/^[\w.%:-]{1,12}$/)
    // Deleting the model would be obeyed, and then there is nothing left to ask.
    const name = route.path === '/api/delete' ? 'nobody' : model
    const body = route.schema === null ? odd : fitting(route.schema, name, 0)
    return fc.record({ route: fc.constant(route), part: path, body })
  })
  const statuses = new Map<number, number>()
  const endMs = performance.now() + forMs
  let requests = 0
  const sender = async (number: number): Promise<void> => {
    for (let round = 0; performance.now() < endMs; round++) {
      for (const { route, part, body } of fc.sample(cases, {
        numRuns: 20,
        seed: seed + number * 100_003 + round,
      })) {
        const status = await send(url, { route, part, body })
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        requests += 1
        if (performance.now() > endMs) return
      }
    }
  }
  await Promise.all([0, 1, 2, 3].map(sender))
  return { requests, statuses }
}

async function send(
  url: string,
  { route, part, body }: { route: Route; part: string; body: Json },
): Promise<number> {
  const path = route.path.replaceAll(/\{\w+\}/g, part)
  const text = JSON.stringify(body)
  const about = `${route.method} ${path} ${text.slice(0, 2000)}`
  const patience = AbortSignal.timeout(answerMsMax)
  try {
    const response = await fetch(`${url}${path}`, {
      method: route.method,
      signal: patience,
      ...(route.method === 'GET' || route.method === 'HEAD' ? {} : { body: text }),
    })
    const said = await response.text()
    // Not ready is an answer here, and the document says so.
    const isToldUnready = path === '/readyz' && response.status === 503
    if (isToldUnready) return response.status
    assert.ok(response.status < 500, `${about} got ${response.status}: ${said.slice(0, 500)}`)
    if (response.status >= 400 && route.method !== 'HEAD')
      assert.ok('error' in (JSON.parse(said) as object), about)
    return response.status
  } catch (error) {
    if (patience.aborted)
      throw new Error(`${about} was not answered in ${answerMsMax} ms`, { cause: error })
    throw error
  }
}
