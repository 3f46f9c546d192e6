// What the routes share.
import type { HttpBindings } from '@hono/node-server'
import type { Context, Hono } from 'hono'
import type { Machine } from '../runtime/machine.ts'
import type { Serving } from '../runtime/serving.ts'
import type { LiveAnswers } from './answers/live.ts'
import type { ApiDocument } from './api-document.ts'

/** Who asks, as the guard found out. */
export interface Caller {
  /** May change the cluster and its models. */
  readonly admin: boolean
  /** Requests share cached prefixes and stored responses only within one scope. Never the key itself. */
  readonly scope: string
}

export interface GatewayEnv {
  Bindings: HttpBindings
  Variables: { caller: Caller }
}

export type GatewayApp = Hono<GatewayEnv>
export type GatewayContext = Context<GatewayEnv>

/** The part of Serving that protocols use; tests put something simpler in its place. */
export type GatewayServing = Pick<
  Serving,
  | 'models'
  | 'aliases'
  | 'lookUp'
  | 'isReady'
  | 'generate'
  | 'prepare'
  | 'unload'
  | 'setAlias'
  | 'removeAlias'
  | 'idleMs'
  | 'generations'
>

export interface GatewayParts {
  readonly serving: GatewayServing
  readonly machine: Pick<Machine, 'state'>
  readonly live: LiveAnswers
  readonly api: ApiDocument
  readonly version: string
  readonly wallMs: () => number
  readonly randomHex: (bytes: number) => string
}
