import type { Command } from 'commander'
import { renderDot } from '../../core/topology/render-dot.ts'
import { renderSvg } from '../../core/topology/render-svg.ts'
import { renderText } from '../../core/topology/render-text.ts'
import { buildTopology } from '../../core/topology/topology.ts'
import { type CliContext, UserError, exitCodes } from '../command.ts'
import { type FactsOptions, collectFacts } from '../machines/facts-source.ts'

const renderers = { text: renderText, dot: renderDot, svg: renderSvg } as const

interface Options extends FactsOptions {
  readonly format: string
  readonly json?: boolean
}

export function register(command: Command, context: CliContext): void {
  command
    .option('--from <folder>', 'read captures: one subfolder per machine')
    .option('--machines <names>', 'only these machines, separated by commas')
    .option('--format <format>', 'text, dot or svg', 'text')
    .action(async (options: Options) => {
      const render = renderers[options.format as keyof typeof renderers]
      if (render === undefined)
        throw new UserError(`There is no format "${options.format}": take text, dot or svg`, {
          exitCode: exitCodes.usage,
        })
      const topology = buildTopology((await collectFacts(context, options)).machines)
      if (options.json === true) context.out.json(topology)
      else context.out.result(render(topology))
    })
}
