// Turns the files of the knowledge base into findings, conflicts and topics, and lists what is
// wrong with them. Nothing is half accepted: who cites us must be able to rely on all of it.
import { type SplitFile, lineOfKey, plainToml, problemsOf, splitFile } from './front-matter.ts'
import { type ParsedFiles, type Placed, checkKnowledge } from './check-knowledge.ts'
import { KnowledgeFilesError, type Problem } from './problems.ts'
import { type KnowledgeFile, synonymsFile } from './read-files.ts'
import { conflictHead, findingHead, synonymsHead, topicHead } from './schema.ts'
import type { Conflict, Finding, Knowledge, Topic } from './types.ts'
import { parseSections } from './topic-sections.ts'

type Outcome<Thing> =
  | { readonly kind: 'parsed'; readonly thing: Thing }
  | { readonly kind: 'malformed'; readonly problems: readonly Problem[] }

/** Everything the files say, or a KnowledgeFilesError that names each bad line. */
export function parseKnowledge(files: readonly KnowledgeFile[]): Knowledge {
  const parsed = parseFiles(files)
  const problems = parsed.problems.length > 0 ? parsed.problems : checkKnowledge(parsed)
  if (problems.length > 0) throw new KnowledgeFilesError(problems)
  return {
    findings: parsed.findings.map(({ thing }) => thing).sort((a, b) => a.id - b.id),
    conflicts: parsed.conflicts.map(({ thing }) => thing),
    topics: parsed.topics.map(({ thing }) => thing),
    synonyms: parsed.synonyms,
  }
}

export function parseFiles(files: readonly KnowledgeFile[]): ParsedFiles {
  const findings: Placed<Finding>[] = []
  const conflicts: Placed<Conflict>[] = []
  const topics: Placed<Topic>[] = []
  let synonyms: ParsedFiles['synonyms'] = []
  const problems: Problem[] = []
  const take = <Thing>(split: SplitFile, outcome: Outcome<Thing>, into: Placed<Thing>[]): void => {
    if (outcome.kind === 'parsed') into.push({ thing: outcome.thing, split })
    else problems.push(...outcome.problems)
  }
  for (const { folder, path, content } of files) {
    const outcome = (folder === synonymsFile ? plainToml : splitFile)(path, content)
    if (outcome.kind === 'malformed') problems.push(outcome.problem)
    else if (folder === 'findings') take(outcome.split, parseFinding(outcome.split), findings)
    else if (folder === 'conflicts') take(outcome.split, parseConflict(outcome.split), conflicts)
    else if (folder === 'topics') take(outcome.split, parseTopic(outcome.split), topics)
    else {
      const parsed = synonymsHead.safeParse(outcome.split.head)
      if (parsed.success) synonyms = parsed.data.groups
      else problems.push(...problemsOf(outcome.split, parsed.error))
    }
  }
  return { findings, conflicts, topics, synonyms, problems }
}

function parseFinding(split: SplitFile): Outcome<Finding> {
  const parsed = findingHead.safeParse(split.head)
  if (!parsed.success) return { kind: 'malformed', problems: problemsOf(split, parsed.error) }
  const { supports, contradicts, supersedes, see_also: seeAlso, ...head } = parsed.data
  const problems: Problem[] = []
  const complain = (line: number, message: string): void =>
    void problems.push({ file: split.file, line, message })
  if (split.text === '') complain(split.textLine, 'the evidence below the head is missing')
  const number = /(\d+)-[^/]*\.md$/.exec(split.file)?.[1]
  if (Number(number) !== head.id)
    complain(
      lineOfKey(split, ['id']),
      `the id is ${head.id}, so the file's name must begin with ${String(head.id).padStart(4, '0')}-`,
    )
  if (problems.length > 0) return { kind: 'malformed', problems }
  const relations = { supports, contradicts, supersedes, seeAlso }
  return { kind: 'parsed', thing: { ...head, evidence: split.text, relations } }
}

function parseConflict(split: SplitFile): Outcome<Conflict> {
  const parsed = conflictHead.safeParse(split.head)
  if (!parsed.success) return { kind: 'malformed', problems: problemsOf(split, parsed.error) }
  if (split.text === '') {
    const message = 'the reason below the head is missing'
    return { kind: 'malformed', problems: [{ file: split.file, line: split.textLine, message }] }
  }
  return { kind: 'parsed', thing: { ...parsed.data, reason: split.text } }
}

function parseTopic(split: SplitFile): Outcome<Topic> {
  const parsed = topicHead.safeParse(split.head)
  if (!parsed.success) return { kind: 'malformed', problems: problemsOf(split, parsed.error) }
  const sections = parseSections(split)
  if (sections.kind === 'malformed') return sections
  return { kind: 'parsed', thing: { ...parsed.data, ...sections.sections } }
}
