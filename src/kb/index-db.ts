// The knowledge as one SQLite database: the findings themselves, their relations, the full-text
// index over them and the words by which misspelt ones are recognised.
import { createHash } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { collectMentions } from './mentions.ts'
import type { Finding, Knowledge } from './types.ts'
import { stopWords, subjectWords } from './stop-words.ts'
import { wordsIn } from './words.ts'

/** Raise it whenever this file changes what the database holds: older copies are then left alone. */
const revision = 2

/** The columns of the full-text index, in the order in which ranking weighs them. */
export const indexColumns = ['claim', 'tags', 'evidence', 'history', 'mentions'] as const

const layout = `
  create table meta (key text primary key, value text not null);
  create table findings (
    id integer primary key, status text not null, confidence text not null, json text not null
  );
  create table tags (tag text not null, id integer not null, primary key (tag, id)) without rowid;
  create table relations (
    source integer not null, kind text not null, target integer not null,
    primary key (source, kind, target)
  ) without rowid;
  create index relations_back on relations (target, kind, source);
  create table topics (name text primary key, json text not null);
  create table conflicts (name text primary key, json text not null);
  create virtual table search using fts5(
    ${indexColumns.join(', ')}, content='', tokenize='porter unicode61 remove_diacritics 2'
  );
  create table words (word text primary key, count integer not null);
  create virtual table synonyms using fts5(
    member, grp unindexed, size unindexed, tokenize='porter unicode61 remove_diacritics 2'
  );
  create virtual table asked using fts5(
    question, size unindexed, cites unindexed, tokenize='porter unicode61 remove_diacritics 2'
  );
  create virtual table spelling using fts5(word, tokenize='trigram');
`

/** Names what a database holds besides the files it was built from. */
export const indexLayout: string = createHash('sha256')
  .update(JSON.stringify([revision, layout, [...stopWords], [...subjectWords]]))
  .digest('hex')
  .slice(0, 8)

export function buildIndex(knowledge: Knowledge, digest: string): DatabaseSync {
  const db = new DatabaseSync(':memory:')
  db.exec(layout)
  db.exec('begin')
  db.prepare('insert into meta values (?, ?)').run('digest', digest)
  const mentions = collectMentions(knowledge)
  for (const finding of knowledge.findings)
    insertFinding(db, finding, mentions.get(finding.id) ?? '')
  for (const table of ['topics', 'conflicts'] as const) {
    const insert = db.prepare(`insert into ${table} values (?, ?)`)
    for (const thing of knowledge[table]) insert.run(thing.name, JSON.stringify(thing))
  }
  insertWords(db, knowledge)
  insertSynonyms(db, knowledge)
  insertQuestions(db, knowledge)
  db.exec('commit')
  db.exec("insert into search (search) values ('optimize')")
  return db
}

function insertFinding(db: DatabaseSync, finding: Finding, mentions: string): void {
  const { id, status, confidence, relations } = finding
  db.prepare('insert into findings values (?, ?, ?, ?)').run(
    id,
    status,
    confidence,
    JSON.stringify(finding),
  )
  const tag = db.prepare('insert or ignore into tags values (?, ?)')
  for (const name of finding.tags) tag.run(name, id)
  const relation = db.prepare('insert or ignore into relations values (?, ?, ?)')
  for (const [kind, targets] of Object.entries(relations))
    for (const target of targets as readonly number[]) relation.run(id, kind, target)
  db.prepare(
    `insert into search (rowid, ${indexColumns.join(', ')}) values (?, ?, ?, ?, ?, ?)`,
  ).run(id, ...searchTexts(finding), mentions)
}

function searchTexts(finding: Finding): [string, string, string, string] {
  return [
    finding.claim,
    finding.tags.join(' '),
    finding.evidence,
    [finding.earlier, finding.correction, ...finding.sources].filter(Boolean).join('\n'),
  ]
}

function insertWords(db: DatabaseSync, knowledge: Knowledge): void {
  const counts = new Map<string, number>()
  for (const finding of knowledge.findings)
    for (const text of searchTexts(finding))
      for (const word of wordsIn(text)) counts.set(word, (counts.get(word) ?? 0) + 1)
  const count = db.prepare('insert into words values (?, ?)')
  const spelling = db.prepare('insert into spelling (word) values (?)')
  for (const [word, times] of counts) {
    count.run(word, times)
    if (/^\p{L}{3,}$/u.test(word)) spelling.run(word)
  }
}

function insertSynonyms(db: DatabaseSync, knowledge: Knowledge): void {
  const insert = db.prepare('insert into synonyms (member, grp, size) values (?, ?, ?)')
  for (const [group, members] of knowledge.synonyms.entries())
    for (const member of members) insert.run(member, group, wordsIn(member).length)
}

/** The questions of the topics: someone has already said which findings answer them. */
function insertQuestions(db: DatabaseSync, knowledge: Knowledge): void {
  const insert = db.prepare('insert into asked (question, size, cites) values (?, ?, ?)')
  for (const { question, cites } of knowledge.topics.flatMap((topic) => topic.questions)) {
    const telling = new Set(
      wordsIn(question).filter((word) => !stopWords.has(word) && !subjectWords.has(word)),
    )
    insert.run(question, telling.size, JSON.stringify(cites))
  }
}
