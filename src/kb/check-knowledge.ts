// What no single file can know: ids that exist once, relations and citations that lead somewhere,
// contradictions that someone has settled, findings that some topic shows.
import { citedIds } from './citations.ts'
import { type SplitFile, lineOfKey } from './front-matter.ts'
import type { Problem } from './problems.ts'
import type { Conflict, Finding, Topic } from './types.ts'

/** A thing together with the file it came from. */
export interface Placed<Thing> {
  readonly thing: Thing
  readonly split: SplitFile
}

export interface ParsedFiles {
  readonly findings: readonly Placed<Finding>[]
  readonly conflicts: readonly Placed<Conflict>[]
  readonly topics: readonly Placed<Topic>[]
  readonly synonyms: readonly (readonly string[])[]
  readonly problems: readonly Problem[]
}

const relationKeys = {
  supports: 'supports',
  contradicts: 'contradicts',
  supersedes: 'supersedes',
  seeAlso: 'see_also',
} as const

export function checkKnowledge(parsed: ParsedFiles): Problem[] {
  const known = new Set(parsed.findings.map(({ thing }) => thing.id))
  return [
    ...repeated(parsed.findings, 'id'),
    ...repeated(parsed.conflicts, 'name'),
    ...repeated(parsed.topics, 'name'),
    ...parsed.findings.flatMap((placed) => checkRelations(placed, known)),
    ...parsed.findings.flatMap((placed) => checkSettled(placed, parsed.conflicts)),
    ...parsed.findings.flatMap((placed) => checkShown(placed, parsed.topics)),
    ...parsed.conflicts.flatMap((placed) => checkConflict(placed, known)),
    ...parsed.topics.flatMap((placed) => checkTopic(placed, known, parsed.topics)),
  ]
}

function repeated<Key extends string, Thing extends Record<Key, number | string>>(
  all: readonly Placed<Thing>[],
  key: Key,
): Problem[] {
  const first = new Map<number | string, string>()
  const problems: Problem[] = []
  for (const { thing, split } of all) {
    const earlier = first.get(thing[key])
    if (earlier === undefined) first.set(thing[key], split.file)
    else
      problems.push({
        file: split.file,
        line: lineOfKey(split, [key]),
        message: `the ${key} ${thing[key]} is already taken by ${earlier}`,
      })
  }
  return problems
}

function checkRelations({ thing, split }: Placed<Finding>, known: ReadonlySet<number>): Problem[] {
  return Object.entries(relationKeys).flatMap(([name, key]) =>
    thing.relations[name as keyof typeof relationKeys]
      .filter((id) => !known.has(id) || id === thing.id)
      .map((id) => ({
        file: split.file,
        line: lineOfKey(split, [key]),
        message: `"${key}": ${id === thing.id ? 'a finding has no relation to itself' : `there is no finding ${id}`}`,
      })),
  )
}

/** Two findings that contradict each other need a conflict file that says which one to use. */
function checkSettled(
  { thing, split }: Placed<Finding>,
  conflicts: readonly Placed<Conflict>[],
): Problem[] {
  const settles = (conflict: Conflict, id: number): boolean =>
    conflict.stands.includes(id) || conflict.claims.some((claim) => claim.id === id)
  return thing.relations.contradicts
    .filter((id) => !conflicts.some((c) => settles(c.thing, id) && settles(c.thing, thing.id)))
    .map((id) => ({
      file: split.file,
      line: lineOfKey(split, ['contradicts']),
      message: `contradicts ${id}, but no file in conflicts/ names both and says which stands`,
    }))
}

function checkShown(
  { thing, split }: Placed<Finding>,
  topics: readonly Placed<Topic>[],
): Problem[] {
  if (topics.some((topic) => topic.thing.tags.some((tag) => thing.tags.includes(tag)))) return []
  const message = `no topic has one of these tags: ${thing.tags.join(', ')}`
  return [{ file: split.file, line: lineOfKey(split, ['tags']), message }]
}

function checkConflict({ thing, split }: Placed<Conflict>, known: ReadonlySet<number>): Problem[] {
  const stands = thing.stands.map((id) => ({ id, line: lineOfKey(split, ['stands']) }))
  const claims = thing.claims.map(({ id }, index) => ({
    id,
    line: lineOfKey(split, ['claims', index, 'id']),
  }))
  const cited = citedIds(thing.reason).map((id) => ({ id, line: split.textLine }))
  return [...stands, ...claims, ...cited]
    .filter(({ id }) => !known.has(id))
    .map(({ id, line }) => ({ file: split.file, line, message: `there is no finding ${id}` }))
}

function checkTopic(
  { thing, split }: Placed<Topic>,
  known: ReadonlySet<number>,
  topics: readonly Placed<Topic>[],
): Problem[] {
  const figures = thing.figures.flatMap(({ cites }, index) =>
    cites.map((id) => ({ id, line: lineOfKey(split, ['figures', index, 'cites']) })),
  )
  const cited = split.text
    .split('\n')
    .flatMap((line, index) => citedIds(line).map((id) => ({ id, line: split.textLine + index })))
  const unknown = [...figures, ...cited]
    .filter(({ id }) => !known.has(id))
    .map(({ id, line }) => ({ file: split.file, line, message: `there is no finding ${id}` }))
  const strangers = thing.related
    .filter((name) => !topics.some((topic) => topic.thing.name === name))
    .map((name) => ({
      file: split.file,
      line: lineOfKey(split, ['related']),
      message: `there is no topic "${name}"`,
    }))
  return [...unknown, ...strangers]
}
