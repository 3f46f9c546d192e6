// bushel kb: the knowledge base about computing on several Macs. It needs no daemon.
import type { Command } from 'commander'
import { confidences, statuses } from '../../kb/types.ts'
import type { CliContext } from '../command.ts'
import { ask, conflicts, detail, search, skill, stats } from '../kb/actions.ts'
import { collectChoices, collectWords, parseLimit } from '../kb/options.ts'

export function register(command: Command, context: CliContext): void {
  command.description('ask the knowledge base about distributed computing on Macs').addHelpText(
    'after',
    `
Examples:
  kb search rdma latency            findings by words, misspelt ones too
  kb search cable --tag setup       only findings with a tag
  kb detail 306                     one finding with its sources and relations
  kb skill gpu-distributed          the whole subject; kb skill alone lists the topics
  kb ask "why is my cluster slow?"  an answer by a loaded model that cites findings
  kb conflicts                      where sources contradict each other, and what to use`,
  )

  /** A subcommand that also takes --json, whichever side of its name the person puts it. */
  const add = (usage: string, summary: string): Command =>
    command
      .command(usage)
      .summary(summary)
      .description(summary)
      .option('--json', 'print one JSON document on stdout')
      .exitOverride()

  add('search <words...>', 'findings that match the words, best first')
    .option('--tag <tag>', 'only findings with this tag (repeat for several)', collectWords)
    .option('--status <status>', `only these: ${statuses.join(', ')}`, collectChoices(statuses))
    .option(
      '--confidence <level>',
      `only these: ${confidences.join(', ')}`,
      collectChoices(confidences),
    )
    .option('--limit <count>', 'how many at most', parseLimit, 10)
    .action((words: string[], _options: unknown, self: Command) =>
      search(context, words.join(' '), self.optsWithGlobals()),
    )

  add('detail <id>', 'one finding with its evidence, sources and relations').action(
    (id: string, _options: unknown, self: Command) => detail(context, id, self.optsWithGlobals()),
  )

  add('skill [topic]', 'what to know about a topic; without a name, the topics').action(
    (topic: string | undefined, _options: unknown, self: Command) =>
      skill(context, topic, self.optsWithGlobals()),
  )

  add('ask <question...>', 'an answer by a loaded model, citing findings')
    .option('--model <name>', 'which model to ask (default: a loaded one)')
    .action((words: string[], _options: unknown, self: Command) =>
      ask(context, words.join(' '), self.optsWithGlobals()),
    )

  add('conflicts [about]', 'where findings contradict each other, and what to use')
    .addHelpText('after', '\n[about] is the name of a conflict or the id of a finding.')
    .action((about: string | undefined, _options: unknown, self: Command) =>
      conflicts(context, about, self.optsWithGlobals()),
    )

  add('stats', 'how much there is, by status, confidence, topic and tag').action(
    (_options: unknown, self: Command) => stats(context, self.optsWithGlobals()),
  )
}
