// What the routes share.
import type { HttpBindings } from '@hono/node-server'
import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Machine } from '../runtime/machine.ts'
import type { Serving } from '../runtime/serving.ts'

export type GatewayEnv = { Bindings: HttpBindings }
export type GatewayApp = OpenAPIHono<GatewayEnv>

export interface GatewayParts {
  readonly serving: Serving
  readonly machine: Machine
  readonly version: string
  readonly wallMs: () => number
  readonly randomHex: (bytes: number) => string
}
