// What the kb commands do: each opens the knowledge base, asks it one thing, and prints text or JSON.
import { citationOf, idAskedFor } from '../../kb/citations.ts'
import type { KnowledgeBase } from '../../kb/knowledge-base.ts'
import type { SearchAnswer, SearchOptions } from '../../kb/search.ts'
import { editDistance } from '../../kb/spelling.ts'
import type { Confidence, Finding, Status } from '../../kb/types.ts'
import { type CliContext, UserError, exitCodes } from '../command.ts'
import { daemonUrl } from '../daemon-client.ts'
import { detailJson, searchJson, topicJson } from './json.ts'
import { withKb } from './open-kb.ts'
import {
  renderAnswer,
  renderConflict,
  renderDetail,
  renderHit,
  renderStats,
  renderTopic,
  wrap,
} from './render.ts'

interface Common {
  readonly json?: boolean
}

export function search(
  context: CliContext,
  question: string,
  options: Common & { tag?: string[]; status?: Status[]; confidence?: Confidence[]; limit: number },
): Promise<void> {
  return withKb(context, (kb) => {
    const filters: SearchOptions = {
      tags: options.tag ?? [],
      statuses: options.status ?? [],
      confidences: options.confidence ?? [],
      limit: options.limit,
    }
    const answer = kb.search(question, filters)
    noteReading(context, answer)
    if (answer.hits.length === 0)
      context.out.note(
        `Nothing found for ${quoted(question)}. Try other words, or "kb skill" for the topics.`,
      )
    if (options.json === true) context.out.json(searchJson(answer))
    else if (answer.hits.length > 0)
      context.out.result(answer.hits.map(({ finding }) => renderHit(finding)).join('\n\n'))
  })
}

export function detail(context: CliContext, text: string, options: Common): Promise<void> {
  return withKb(context, (kb) => {
    const found = kb.detail(findingId(kb, text))
    if (found === null) throw unknownFinding(kb, text)
    if (options.json === true) context.out.json(detailJson(found))
    else context.out.result(renderDetail(found))
  })
}

export function skill(
  context: CliContext,
  name: string | undefined,
  options: Common,
): Promise<void> {
  return withKb(context, (kb) => {
    const topics = kb.topics()
    if (name === undefined) {
      const list = topics.map(({ name: topic, title, summary }) => ({
        name: topic,
        title,
        summary,
      }))
      if (options.json === true) context.out.json(list)
      else
        context.out.result(
          list.map((topic) => `${topic.name}\n${wrap(topic.summary, '  ')}`).join('\n'),
        )
      return
    }
    const found = kb.topic(name)
    if (found === null) {
      const names = topics.map((topic) => topic.name)
      const near = names.filter((one) => editDistance(one, name.slice(0, 60)) <= 3)
      throw new UserError(
        `There is no topic ${quoted(name)}; ${near.length > 0 ? `did you mean ${near.join(' or ')}?` : `there are ${names.join(', ')}`}`,
      )
    }
    if (options.json === true) context.out.json(topicJson(found))
    else context.out.result(renderTopic(found))
  })
}

export function ask(
  context: CliContext,
  question: string,
  options: Common & { model?: string },
): Promise<void> {
  return withKb(context, async (kb) => {
    // Talking to a daemon needs libraries that the other commands do without.
    const [{ askKnowledge }, { createDaemonModel }] = await Promise.all([
      import('../../kb/ask.ts'),
      import('./daemon-model.ts'),
    ])
    const askModel = createDaemonModel({
      url: daemonUrl(context.env),
      model: options.model,
      apiKey: context.env['BUSHEL_API_KEY'],
    })
    if (context.out.isTty) context.out.note('Asking a loaded model; it may need a minute …')
    const answer = await askKnowledge((text) => kb.search(text), question, askModel)
    if (options.json === true) context.out.json(answer)
    else context.out.result(renderAnswer(answer))
    if (answer.kind === 'answered' && answer.removed.length > 0)
      context.out.note(
        `Taken out: ${answer.removed.map(citationOf).join(', ')}, which the model cited without having been given.`,
      )
    if (answer.kind === 'answered' && answer.dropped.length > 0)
      context.out.note(
        `Left out: ${answer.dropped.length} statement${answer.dropped.length === 1 ? '' : 's'} of the model (${[...new Set(answer.dropped)].join(', ')}).`,
      )
  })
}

export function conflicts(
  context: CliContext,
  about: string | undefined,
  options: Common,
): Promise<void> {
  return withKb(context, (kb) => {
    const found = about === undefined ? kb.conflicts() : conflictsAbout(kb, about)
    if (options.json === true) context.out.json(found)
    else if (found.length === 0)
      context.out.note(
        `No conflict names finding ${about ?? ''}; its claim is not contradicted here.`,
      )
    else context.out.result(found.map(renderConflict).join('\n\n'))
  })
}

export function stats(context: CliContext, options: Common): Promise<void> {
  return withKb(context, (kb) => {
    const counted = kb.stats()
    if (options.json === true) context.out.json(counted)
    else context.out.result(renderStats(counted))
  })
}

function conflictsAbout(kb: KnowledgeBase, about: string): ReturnType<KnowledgeBase['conflicts']> {
  const named = kb.conflicts().filter((conflict) => conflict.name === about)
  if (named.length > 0) return named
  if (idAskedFor(about) === null)
    throw new UserError(
      `There is no conflict ${quoted(about)}; "kb conflicts" lists them, and an id shows those of a finding`,
    )
  const found = kb.detail(findingId(kb, about))
  if (found === null) throw unknownFinding(kb, about)
  return [...found.conflicts]
}

function findingId(kb: KnowledgeBase, text: string): number {
  const id = idAskedFor(text)
  if (id !== null) return id
  const [example] = kb.search(text, { limit: 1 }).hits
  const hint = example === undefined ? '' : `; the nearest to these words is ${example.finding.id}`
  throw new UserError(
    `${quoted(text)} is not the id of a finding, which is a number such as 306${hint}`,
    { exitCode: exitCodes.usage },
  )
}

function unknownFinding(kb: KnowledgeBase, text: string): UserError {
  const ids = kb.findings().map((finding: Finding) => finding.id)
  return new UserError(
    `There is no finding ${text.trim().slice(0, 40)}; there are ${ids.length}, from ${ids[0]} to ${ids.at(-1)}, and "kb search WORDS" finds them`,
  )
}

function noteReading(context: CliContext, answer: SearchAnswer): void {
  for (const [word, nearest] of Object.entries(answer.readAs))
    context.out.note(`Read "${word}" as "${nearest}".`)
  if (answer.cut) context.out.note('The question is long; only its beginning was looked at.')
}

function quoted(text: string): string {
  return `"${text.length > 80 ? `${text.slice(0, 79)}…` : text}"`
}
