// `bushel plan`: how a model would run on these machines, or on machines one might buy; and how good
// earlier predictions were.
import { placeModel } from '../../core/plan/place-model.ts'
import { loadPlanTables } from '../../models/plan-tables.ts'
import { type CliContext, type CommandModule, UserError, exitCodes } from '../command.ts'
import { type CurrentCluster, clusterAtHand } from '../plan/current-cluster.ts'
import { renderOutcome, renderShortage } from '../plan/render.ts'
import { type PlanOptions, buildRequest } from '../plan/request.ts'
import { readScore, renderScore } from '../plan/score-file.ts'
import { readPrices } from '../plan/settings.ts'
import { homeDir } from '../settings.ts'

interface Options extends PlanOptions {
  readonly json?: boolean
  readonly all?: boolean
  readonly score?: boolean
}

const rowsShown = 14

/** `current` is the cluster at hand; tests put another in its place. */
export function createPlanCommand(current: CurrentCluster | null): CommandModule {
  return {
    register(command, context) {
      command
        .argument('[model]', 'catalogue name, name:q8, repository, or a folder with a config.json')
        .option(
          '--cluster <machines>',
          'plan for machines you name, such as 4xM3Ultra-512,tb5-mesh',
        )
        .option('--context <tokens>', 'tokens each request may grow to', '8192')
        .option('--prompt <tokens>', 'tokens of a typical prompt (1024)')
        .option('--concurrency <n>', 'requests at once', '1')
        .option('--policy <goal>', 'fastest, throughput, context, power or survive', 'fastest')
        .option('--pin <machines>', 'use these, comma between')
        .option('--avoid <machines>', 'do not use these')
        .option('--keep-free <machines>', 'leave these for other work')
        .option('--collectives <regime>', 'take unmeasured RDMA collectives as fast or slow')
        .option(
          '--assume <strategies>',
          'plan as if the worker ran these too (tensor, expert, … or all)',
        )
        .option('--all', 'show every plan that was compared')
        .option('--score', 'how earlier predictions compare with what happened')
        .action(async (model: string | undefined, options: Options) => {
          if (options.score === true) {
            const score = readScore(homeDir(context.env))
            if (options.json === true) context.out.json(score)
            else context.out.result(renderScore(score))
            return
          }
          if (model === undefined)
            throw new UserError(
              'name a model: bushel plan MODEL [--cluster …]; --help shows the rest',
              { exitCode: exitCodes.usage },
            )
          await runPlan(model, options, context, current)
        })
    },
  }
}

async function runPlan(
  model: string,
  options: Options,
  context: CliContext,
  given: CurrentCluster | null,
): Promise<void> {
  const tables = loadPlanTables(context.programDir)
  const current = given ?? clusterAtHand(context, tables)
  const { request, notes } = await buildRequest(model, options, {
    tables,
    current,
    prices: readPrices(context.env),
  })
  for (const note of notes) context.out.note(note)
  const outcome = placeModel(request, { shop: tables.chips.map((entry) => entry.chip) })
  if (options.json === true) {
    context.out.json(outcome)
    if (outcome.kind !== 'planned') process.exitCode = exitCodes.failed
    return
  }
  switch (outcome.kind) {
    case 'planned':
      for (const warning of outcome.warnings) context.out.note(warning)
      context.out.result(
        renderOutcome(
          outcome,
          { request, worlds: request.worlds },
          options.all === true ? outcome.plans.length : rowsShown,
        ),
      )
      return
    case 'memory-short':
      throw new UserError(renderShortage(outcome.shortage))
    case 'no-machines':
      throw new UserError(outcome.message)
  }
}

const module: CommandModule = createPlanCommand(null)

export const register: CommandModule['register'] = (command, context) => {
  module.register(command, context)
}
