// A plan for people: a table of what was compared, a drawing of the chosen one, and why.
import type {
  MeasuredWorld,
  PlanLink,
  PlanMachine,
  PlanOutcome,
  PlanRequest,
  PlannedGroup,
  RankedPlan,
  Shortage,
} from '../../core/plan/types.ts'
import { formatBytes, formatDuration } from '../../core/units.ts'
import { duration, figure, table, tokens } from './text.ts'

const barWidth = 24

export interface RenderContext {
  readonly request: PlanRequest
  readonly worlds: readonly MeasuredWorld[]
}

function machinesOf(plan: RankedPlan): string {
  const perGroup = plan.placement.groups.map((group) =>
    group.stages.map((stage) => stage.ranks.length).join('+'),
  )
  return plan.placement.groups.length > 1
    ? `${perGroup.length}×(${perGroup[0] ?? ''})`
    : (perGroup[0] ?? '')
}

function planRow(plan: RankedPlan, index: number, currency: string | null): string[] {
  const { figures } = plan
  const alone = figures.tokensPerSecondAlone
  const survived = figures.losses.filter((loss) => loss.survives).length
  const row = [
    `${index + 1} ${plan.placement.strategy}${plan.cannotRun === null ? '' : ' ✗'}`,
    machinesOf(plan),
    duration(figures.firstTokenSeconds.value),
    figure(alone.value),
    `${figure(alone.low)}–${figure(alone.high)}`,
    figure(figures.tokensPerSecondLoaded.value),
    tokens(figures.contextTokensLongest),
    figures.watts.toFixed(0),
    figures.tokensPerJoule.toFixed(2),
    `${survived}/${figures.losses.length}`,
  ]
  if (currency !== null)
    row.push(figures.pricePerMillionTokens === null ? '–' : figure(figures.pricePerMillionTokens))
  return row
}

export function renderTable(
  plans: readonly RankedPlan[],
  context: RenderContext,
  rowsMax: number,
): string {
  const currency = context.request.prices?.currency ?? null
  const header = [
    'plan',
    'machines',
    'first token',
    'tok/s',
    'range',
    'loaded',
    'context',
    'watts',
    'tok/J',
    'losses',
  ]
  if (currency !== null) header.push(`${currency}/Mtok`)
  const shown = plans.slice(0, rowsMax)
  const lines = [
    table(
      header,
      shown.map((plan, index) => planRow(plan, index, currency)),
    ),
  ]
  if (plans.length > rowsMax) lines.push(`… and ${plans.length - rowsMax} more (--all shows them)`)
  if (shown.some((plan) => plan.cannotRun !== null))
    lines.push('✗ predicted, but cannot be run: never chosen')
  return lines.join('\n')
}

function bar(part: number): string {
  const filled = Math.max(0, Math.min(barWidth, Math.round(part * barWidth)))
  return '█'.repeat(filled) + '░'.repeat(barWidth - filled)
}

function bestLink(links: readonly PlanLink[], a: string, b: string): PlanLink | undefined {
  return links
    .filter(
      (entry) =>
        (entry.source === a && entry.target === b) || (entry.source === b && entry.target === a),
    )
    .sort(
      (x, y) =>
        Number(y.figures.class === 'rdma') - Number(x.figures.class === 'rdma') ||
        y.figures.bytesPerSecond - x.figures.bytesPerSecond,
    )[0]
}

/** What a link is planned with, and what that rests on. */
function linkText(link: PlanLink | undefined): string {
  if (link === undefined) return 'no link'
  const { class: kind, bytesPerSecond, hopSeconds, measured } = link.figures
  const basis = [
    ...(measured === undefined ? [] : [`measured ${formatDuration(measured.ageMs)} ago`]),
    ...(measured?.nominalBytesPerSecond == null
      ? []
      : [`${formatBytes(measured.nominalBytesPerSecond)}/s nominal`]),
    ...(hopSeconds === undefined ? [] : [`hop of ${duration(hopSeconds)} probed`]),
  ]
  const words = `${kind}, ${formatBytes(bytesPerSecond)}/s`
  return basis.length === 0 ? words : `${words} (${basis.join(', ')})`
}

/** Stages from top to bottom, the ranks of a world side by side under one bracket. */
export function drawGroup(
  group: PlannedGroup,
  machines: readonly PlanMachine[],
  links: readonly PlanLink[],
): string {
  const byId = new Map<string, PlanMachine>(machines.map((machine) => [machine.id, machine]))
  const nameWidth = Math.max(...machines.map((machine) => machine.name.length))
  const lines: string[] = []
  for (const [index, stage] of group.stages.entries()) {
    const previous = group.stages[index - 1]
    if (previous !== undefined)
      lines.push(
        `  │ ${linkText(bestLink(links, previous.ranks[0]?.machine ?? '', stage.ranks[0]?.machine ?? ''))}`,
      )
    const wide = stage.ranks.length > 1
    for (const [rank, entry] of stage.ranks.entries()) {
      const machine = byId.get(entry.machine)
      const free = machine?.memoryFreeBytes ?? entry.memoryBytes
      const corner = !wide
        ? '──'
        : rank === 0
          ? '┌─'
          : rank === stage.ranks.length - 1
            ? '└─'
            : '├─'
      const share = wide ? `, ${(entry.share * 100).toFixed(0)}% of each` : ''
      const layers = `layers ${stage.layers.from}–${stage.layers.to - 1}${share}`
      lines.push(
        `${corner} ${(machine?.name ?? entry.machine).padEnd(nameWidth)}  ${bar(entry.memoryBytes / free)}  ${formatBytes(entry.memoryBytes)} of ${formatBytes(free)}  ${layers}`,
      )
    }
    if (wide)
      lines.push(
        `   ${stage.sharing === 'expert' ? 'experts' : 'tensors'} shared over ${stage.world === 'jaccl' ? 'JACCL (RDMA)' : 'ring (TCP)'}`,
      )
  }
  return lines.join('\n')
}

function explainChosen(plan: RankedPlan, machines: readonly PlanMachine[]): string[] {
  const nameOf = (id: string): string => machines.find((one) => one.id === id)?.name ?? id
  const { figures } = plan
  const lines = [plan.why]
  const [first] = plan.kbFindings
  if (first !== undefined) lines.push(`more: bushel kb detail ${first}`)
  lines.push(
    `rests on: ${figures.restsOn}${figures.regime === 'either' ? '; RDMA collectives were not measured, so the range covers fast and slow ones and the ranking assumes slow' : figures.regime === null || figures.regime === 'measured' ? '' : `; RDMA collectives taken as ${figures.regime}`}`,
  )
  for (const loss of figures.losses)
    lines.push(
      `without ${nameOf(loss.machine)}: ${loss.survives ? `${loss.how}, a gap of about ${duration(loss.gapSeconds ?? 0)}` : loss.how}`,
    )
  return lines
}

export function renderOutcome(
  outcome: Extract<PlanOutcome, { kind: 'planned' }>,
  context: RenderContext,
  rowsMax: number,
): string {
  const { request } = context
  const { model } = request
  const parts = [
    `${model.name}, ${model.format.name} (${model.format.bitsPerWeight} bits): ${request.contextTokens} tokens of context, ${request.concurrency} at once, prompt of ${request.promptTokens}, goal ${request.policy.goal}`,
    renderTable(outcome.plans, context, rowsMax),
  ]
  const { chosen } = outcome
  if (chosen === null)
    parts.push(`No plan can be run: ${outcome.plans[0]?.cannotRun ?? 'none was found'}.`)
  else {
    const drawings = chosen.placement.groups.map((group) =>
      drawGroup(group, request.machines, request.links),
    )
    parts.push(
      `Chosen: ${chosen.placement.strategy} on ${machinesOf(chosen)}`,
      drawings.join('\n\n'),
      explainChosen(chosen, request.machines).join('\n'),
    )
    const rival = outcome.plans.find(
      (plan) =>
        plan.cannotRun !== null &&
        plan.figures.tokensPerSecondAlone.high > chosen.figures.tokensPerSecondAlone.value,
    )
    if (rival !== undefined)
      parts.push(
        `${rival.placement.strategy} on ${machinesOf(rival)} might do ${figure(rival.figures.tokensPerSecondAlone.low)}–${figure(rival.figures.tokensPerSecondAlone.high)} tok/s, but ${rival.cannotRun ?? ''}.`,
      )
  }
  return parts.join('\n\n')
}

export function renderShortage(shortage: Shortage): string {
  return [
    shortage.message,
    'What would do:',
    ...shortage.remedies.map((remedy) => `  – ${remedy}`),
  ].join('\n')
}
