// The OpenAPI document, put together from what each route says of itself.
import { z } from 'zod'

export interface RouteDescription {
  readonly method: 'get' | 'post' | 'delete' | 'head'
  readonly path: string
  readonly summary: string
  readonly body?: z.ZodType
  readonly query?: Readonly<Record<string, string>>
  /** Status to meaning; a 200 without words of its own is simply "the answer". */
  readonly responses?: Readonly<Record<number, string>>
}

export class ApiDocument {
  readonly #routes: RouteDescription[] = []

  describe(route: RouteDescription): void {
    this.#routes.push(route)
  }

  /** What a path can be asked for, in capitals; empty when there is no such path. */
  methodsOf(path: string): readonly string[] {
    const methods = this.#routes.filter((route) => fits(route.path, path))
    return [...new Set(methods.map((route) => route.method.toUpperCase()))]
  }

  render(version: string): object {
    const paths: Record<string, Record<string, object>> = {}
    for (const route of this.#routes) {
      paths[route.path] = { ...paths[route.path], [route.method]: operation(route) }
    }
    return {
      openapi: '3.1.0',
      info: { title: 'Bushel', version, license: { name: 'Apache-2.0' } },
      paths,
    }
  }
}

/** A parameter stands for one segment, or, at the end, for all that is left: names have slashes. */
function fits(pattern: string, path: string): boolean {
  const wanted = pattern.split('/')
  const given = path.split('/')
  const last = wanted.length - 1
  if (given.length !== wanted.length && !(given.length > last && wanted[last]?.startsWith('{')))
    return false
  return wanted.every((part, index) => part.startsWith('{') || part === given[index])
}

function operation({ summary, path, body, query, responses }: RouteDescription): object {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '')
  const parameters = [
    ...inPath.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
    ...Object.entries(query ?? {}).map(([name, description]) => ({
      name,
      in: 'query',
      description,
      schema: { type: 'string' },
    })),
  ]
  const told = { 200: 'The answer', ...responses }
  return {
    summary,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: schemaOf(body) } },
          },
        }),
    responses: Object.fromEntries(
      Object.entries(told).map(([status, description]) => [status, { description }]),
    ),
  }
}

/** What a client may send; parts that JSON Schema cannot say are left open. */
function schemaOf(body: z.ZodType): object {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(body, {
    io: 'input',
    unrepresentable: 'any',
  })
  return schema
}
