// What the routes share.
import type { HttpBindings } from '@hono/node-server'
import type { Hono } from 'hono'
import type { ApiDocument } from './api-document.ts'
import type { Machine } from '../runtime/machine.ts'
import type { Serving } from '../runtime/serving.ts'

export type GatewayEnv = { Bindings: HttpBindings }
export type GatewayApp = Hono<GatewayEnv>

export interface GatewayParts {
  readonly serving: Serving
  readonly machine: Machine
  readonly api: ApiDocument
  readonly version: string
  readonly wallMs: () => number
  readonly randomHex: (bytes: number) => string
}
