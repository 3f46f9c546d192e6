// What became of the answers of this gateway: for people who ask why there was a pause, and for monitors.
import { machineName } from '../../core/cluster/state.ts'
import type { MachineId } from '../../core/ids.ts'
import { ApiError } from '../api-error.ts'
import type { GatewayApp, GatewayParts } from '../context.ts'
import { prometheusText } from './prometheus.ts'

const listedMax = 100

export function addGenerationRoutes(
  app: GatewayApp,
  { api, serving, machine }: GatewayParts,
  nowMs: () => number,
): void {
  const { generations } = serving
  const reports = (): readonly object[] => {
    const nameOf = (id: MachineId): string => machineName(machine.state, id) ?? id.slice(0, 8)
    const now = nowMs()
    return generations.reports().map((report) => ({
      ...report,
      // Ages, because only this process knows what its clock began at.
      startedMs: now - report.startedMs,
      endedMs: report.endedMs === null ? null : now - report.endedMs,
      attempts: report.attempts.map((attempt) => ({
        ...attempt,
        machine: nameOf(attempt.machine),
        startedMs: now - attempt.startedMs,
        endedMs: now - attempt.endedMs,
      })),
      gaps: report.gaps.map((gap) => ({
        ...gap,
        from: { ...gap.from, machine: nameOf(gap.from.machine) },
        to: { ...gap.to, machine: nameOf(gap.to.machine) },
      })),
    }))
  }
  api.describe({
    method: 'get',
    path: '/cluster/generations',
    summary: 'The last answers of this gateway: attempts, pauses, ends; never what was said',
  })
  api.describe({
    method: 'get',
    path: '/metrics',
    summary: 'Counters of this gateway in the Prometheus text format',
  })
  app.get('/cluster/generations', (c) => c.json(reports().slice(0, listedMax)))
  app.get('/cluster/generations/:id', (c) => {
    const wanted = c.req.param('id')
    const found = (reports() as { id: string; label: string | null }[]).find(
      (report) =>
        report.id === wanted ||
        report.label === wanted ||
        (wanted.length >= 6 && `${report.id} ${report.label ?? ''}`.includes(wanted)),
    )
    if (found !== undefined) return c.json(found)
    const message = `No answer "${wanted}" is remembered on this machine; it keeps the last 500 that went through it`
    throw new ApiError({ status: 404, message, code: 'generation-unknown' })
  })
  app.get('/metrics', (c) => {
    c.header('content-type', 'text/plain; version=0.0.4; charset=utf-8')
    return c.body(prometheusText(generations.log.counters(), generations.liveCount))
  })
}
