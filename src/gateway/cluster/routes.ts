// The cluster's own routes: what the page and the command line do, anyone with the admin token can do.
import { z } from 'zod'
import { strategies } from '../../core/cluster/group-plan.ts'
import { ApiError } from '../api-error.ts'
import type { GatewayApp, GatewayParts } from '../context.ts'
import { parseBody, readJson } from '../read-json.ts'
import { addGenerationRoutes } from './generation-routes.ts'
import { addAliasRoutes } from './alias-routes.ts'
import { type LaunchActions, addLaunchRoutes } from './launch-routes.ts'
import { type MembershipActions, addMembershipRoutes } from './membership-routes.ts'
import { type ProbeAction, addProbeRoute } from './probe-route.ts'
import type { SlowView } from '../../wire/cluster-view.ts'
import { clusterView, deploymentViews } from './view.ts'

export const loadRequest = z.object({
  model: z.string().min(1),
  strategy: z.enum(strategies).default('auto'),
  machines: z.array(z.string()).default([]),
  layers: z.array(z.number().int().min(1)).default([]),
  backend: z.enum(['auto', 'ring', 'jaccl', 'nccl']).default('auto'),
  /** For JACCL: the RDMA device of each rank towards each other, in the order of `machines`. */
  devices: z.array(z.array(z.union([z.string(), z.array(z.string()), z.null()]))).optional(),
  replicas: z.number().int().min(1).max(64).default(1),
  standby: z.boolean().default(false),
  contextTokens: z.number().int().min(1).optional(),
})

export type LoadRequest = z.infer<typeof loadRequest>

/** Things that need more than the state: files, other processes, other machines. */
export interface ClusterActions {
  /** Makes a model wanted; the outcome is a deployment id or a sentence why not. */
  load(request: LoadRequest): Promise<{ deployment: string } | { refused: string }>
  unload(name: string): Promise<{ deployment: string } | { refused: string }>
  listModels(): Promise<readonly object[]>
  /** What every machine says of itself and of the ways between them. */
  facts(): Promise<object>
  readonly probe: ProbeAction
  /** Machines that run well under their prediction. */
  slow(): readonly SlowView[]
  /** What every machine is doing right now. */
  telemetry(): Promise<object>
  readonly membership: MembershipActions
  readonly launches: LaunchActions
  nowMs(): number
  /** Ends the daemon after this response. */
  stop(): void
}

export function addClusterRoutes(
  app: GatewayApp,
  parts: GatewayParts,
  actions: ClusterActions,
): void {
  addMembershipRoutes(app, actions.membership)
  addLaunchRoutes(app, actions.launches)
  addGenerationRoutes(app, parts, () => actions.nowMs())
  addAliasRoutes(app, parts)
  addProbeRoute(app, actions.probe)
  parts.api.describe({
    method: 'get',
    path: '/cluster/view',
    summary: 'Machines, deployments, groups and ranks as they are now',
  })
  parts.api.describe({
    method: 'post',
    path: '/cluster/load',
    summary: 'Makes a model wanted',
    body: loadRequest,
    responses: { 409: 'Why it cannot be' },
  })
  app.get('/cluster/view', (c) =>
    c.json(clusterView(parts.machine.state, actions.nowMs(), actions.slow())),
  )
  app.get('/cluster/deployments', (c) =>
    c.json(deploymentViews(parts.machine.state, actions.nowMs())),
  )
  app.get('/cluster/facts', async (c) => c.json(await actions.facts()))
  app.get('/cluster/telemetry', async (c) => c.json(await actions.telemetry()))
  app.get('/cluster/models', async (c) => c.json(await actions.listModels()))
  app.post('/cluster/load', async (c) => {
    const request = parseBody(loadRequest, await readJson(c.env.incoming))
    return c.json(accepted(await actions.load(request)))
  })
  app.post('/cluster/load-if-absent', async (c) => {
    const { model } = parseBody(
      z.object({ model: z.string().min(1) }),
      await readJson(c.env.incoming),
    )
    const found = parts.serving.lookUp(model)
    const deployment = found.kind === 'found' ? found.served.deployment : null
    if (deployment !== null) return c.json({ deployment: deployment.id })
    return c.json(accepted(await actions.load(loadRequest.parse({ model }))))
  })
  app.post('/cluster/unload', async (c) => {
    const { model } = parseBody(
      z.object({ model: z.string().min(1) }),
      await readJson(c.env.incoming),
    )
    return c.json(accepted(await actions.unload(model)))
  })
  app.post('/cluster/stop', (c) => {
    actions.stop()
    return c.json({ stopping: true })
  })
}

function accepted(outcome: { deployment: string } | { refused: string }): { deployment: string } {
  if ('refused' in outcome)
    throw new ApiError({ status: 409, message: outcome.refused, code: 'refused' })
  return outcome
}
