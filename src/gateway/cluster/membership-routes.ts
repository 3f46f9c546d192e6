// Routes for inviting, joining, approving, removing and leaving, and for what lies between the machines.
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { z } from 'zod'
import { ApiError } from '../api-error.ts'
import type { GatewayApp } from '../context.ts'
import { parseBody, readJson } from '../read-json.ts'

type Outcome<T> = Promise<T | { readonly refused: string }>
interface Named {
  readonly name: string
  readonly id: string
}

export interface MembershipActions {
  invite(uses: number): Promise<{ code: string }>
  join(code: string): Outcome<Named & { machines: number }>
  ask(name: string | null, onWords: (words: string) => void): Outcome<Named & { machines: number }>
  approve(name: string): Outcome<Named>
  asking(): readonly (object & { name: string; words: string })[]
  nearby(): readonly object[]
  links(): readonly object[]
  /** Sends over each link, so long in each of a few transfers, and counts what arrives. */
  measureLinks(milliseconds: number, to: string | null): Outcome<{ links: readonly object[] }>
  remove(name: string): Outcome<Named>
  leave(): Outcome<Named>
  /** Nothing new comes to the machine, and what is there moves away; or it may take part again. */
  drain(name: string, on: boolean): Outcome<Named>
}

const named = z.object({ name: z.string().min(1).max(128) })

export function addMembershipRoutes(app: GatewayApp, actions: MembershipActions): void {
  app.get('/cluster/nearby', (c) => c.json({ nearby: actions.nearby(), asking: actions.asking() }))
  app.get('/cluster/links', (c) => c.json(actions.links()))
  app.post('/cluster/links/measure', async (c) => {
    const body = z.object({
      milliseconds: z.number().min(50).max(10_000).default(400),
      to: z.string().min(1).max(128).nullable().default(null),
    })
    const { milliseconds, to } = parseBody(body, await readJson(c.env.incoming))
    return c.json(accepted(await actions.measureLinks(milliseconds, to)).links)
  })
  app.post('/cluster/invite', async (c) => {
    const uses = z.object({ uses: z.number().int().min(1).max(100).default(1) })
    return c.json(await actions.invite(parseBody(uses, await readJson(c.env.incoming)).uses))
  })
  app.post('/cluster/join', async (c) => {
    const { code } = parseBody(
      z.object({ code: z.string().min(1).max(2000) }),
      await readJson(c.env.incoming),
    )
    return c.json(accepted(await actions.join(code)))
  })
  app.post('/cluster/ask', async (c) => {
    const body = z.object({ name: z.string().max(128).nullable().default(null) })
    const { name } = parseBody(body, await readJson(c.env.incoming))
    // The words are needed at once, the answer comes when a person has approved: one line each.
    const { outgoing } = c.env
    const line = (value: unknown): boolean => outgoing.write(`${JSON.stringify(value)}\n`)
    outgoing.writeHead(200, { 'content-type': 'application/x-ndjson' })
    line(await actions.ask(name, (words) => void line({ words })))
    outgoing.end()
    return RESPONSE_ALREADY_SENT
  })
  app.post('/cluster/approve', async (c) =>
    c.json(accepted(await actions.approve(parseBody(named, await readJson(c.env.incoming)).name))),
  )
  app.post('/cluster/remove', async (c) =>
    c.json(accepted(await actions.remove(parseBody(named, await readJson(c.env.incoming)).name))),
  )
  app.post('/cluster/drain', async (c) => {
    const body = named.extend({ on: z.boolean().default(true) })
    const { name, on } = parseBody(body, await readJson(c.env.incoming))
    return c.json(accepted(await actions.drain(name, on)))
  })
  app.post('/cluster/leave', async (c) => c.json(accepted(await actions.leave())))
}

function accepted<T extends object>(outcome: T | { readonly refused: string }): T {
  if ('refused' in outcome)
    throw new ApiError({ status: 409, message: outcome.refused, code: 'refused' })
  return outcome
}
