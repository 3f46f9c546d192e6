// bushel ps: deployments, their groups, stages and ranks.
import type { Command } from 'commander'
import { formatBytes, formatDuration } from '../../core/units.ts'
import { type DeploymentView, type SlowView, clusterView } from '../../wire/cluster-view.ts'
import { type CliContext, UserError } from '../command.ts'
import { requireDaemon } from '../daemon-client.ts'
import { homeDir } from '../settings.ts'
import { slowLines } from '../slow-machines.ts'
import { table } from '../table.ts'

export function register(command: Command, context: CliContext): void {
  command
    .argument('[model]', 'only this one, with its stages drawn')
    .action(async (model: string | undefined, options: { json?: boolean }) => {
      const daemon = requireDaemon(homeDir(context.env))
      const { deployments: all, slow } = clusterView.parse(await daemon.get('/cluster/view'))
      const shown = model === undefined ? all : all.filter((view) => matches(view, model))
      if (model !== undefined && shown.length === 0) {
        throw new UserError(
          `"${model}" is not loaded; loaded are: ${all.map((view) => view.model).join(', ') || 'none'}`,
        )
      }
      for (const line of slowLines(slow)) context.out.note(line)
      if (options.json === true) context.out.json(shown.map((view) => withSlow(view, slow)))
      else if (shown.length === 0)
        context.out.result('Nothing is loaded; load a model with "bushel load MODEL".')
      else
        context.out.result(model === undefined ? overview(shown) : shown.map(drawing).join('\n\n'))
    })
}

/** Each group with what is said of its machines, for programs. */
function withSlow(view: DeploymentView, slow: readonly SlowView[]): object {
  const groups = view.groups.map((group) => ({
    ...group,
    slow: slow.filter((one) => one.group === group.id),
  }))
  return { ...view, groups }
}

function matches(view: DeploymentView, name: string): boolean {
  const wanted = name.toLowerCase()
  return (
    view.model.toLowerCase() === wanted ||
    view.model.toLowerCase().endsWith(`/${wanted}`) ||
    view.id === wanted
  )
}

function overview(views: readonly DeploymentView[]): string {
  const rows = views.flatMap((view) => {
    if (view.groups.length === 0) return [[view.model, view.status, '', '', '', '', view.detail]]
    return view.groups.map((group) => {
      const ranks = group.stages.flatMap((stage) => stage.ranks)
      const machines = [...new Set(ranks.map((rank) => rank.machine))].join(', ')
      const memory = ranks.reduce((sum, rank) => sum + rank.activeBytes, 0)
      const speed = group.tokensPerSecond > 0 ? `${group.tokensPerSecond.toFixed(1)} tok/s` : ''
      const since = formatDuration(group.sinceMs)
      return [
        view.model,
        `${group.status} ${since}`,
        group.strategy,
        machines,
        formatBytes(memory),
        speed,
        view.detail,
      ]
    })
  })
  return table(['MODEL', 'STATE', 'STRATEGY', 'MACHINES', 'MEMORY', 'SPEED', ''], rows)
}

function drawing(view: DeploymentView): string {
  const lines = [`${view.model}  ${view.status}${view.detail === '' ? '' : `: ${view.detail}`}`]
  for (const group of view.groups) {
    lines.push(
      `  group ${group.id}  ${group.strategy}  ${group.status} since ${formatDuration(group.sinceMs)}`,
    )
    if (group.why !== null) lines.push(`  why: ${group.why}`)
    for (const [index, stage] of group.stages.entries()) {
      const last = index === group.stages.length - 1
      const branch = last ? '└─' : '├─'
      lines.push(`  ${branch} stage ${index}  layers ${stage.layers[0]}–${stage.layers[1] - 1}`)
      if (stage.ranks.length > 1)
        lines.push(`  ${last ? ' ' : '│'}    by ${stage.backend}: ${stage.backendWhy}`)
      for (const rank of stage.ranks) {
        const memory = `${formatBytes(rank.activeBytes)} of ${formatBytes(rank.memoryBytes)}`
        lines.push(
          `  ${last ? ' ' : '│'}    rank ${rank.rank} on ${rank.machine}  pid ${rank.pid ?? '–'}  ${rank.state}  ${memory}`,
        )
      }
    }
  }
  for (const { machine, survives, gapMs, how } of view.losses) {
    const gap =
      gapMs === null ? '' : `, a pause of about ${Math.max(1, Math.round(gapMs / 1000))} s`
    lines.push(`  without ${machine}: ${survives ? `goes on${gap}` : 'stops'}; ${how}`)
  }
  return lines.join('\n')
}
