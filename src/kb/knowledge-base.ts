// The knowledge base as its users see it: search, one finding with its relations, topics, conflicts.
import type { DatabaseSync } from 'node:sqlite'
import type { Conflict, Finding, Relations, Topic } from './types.ts'
import { type Search, type SearchAnswer, type SearchOptions, createSearch } from './search.ts'

type RelationKind = keyof Relations

export interface Neighbour {
  readonly id: number
  readonly claim: string
  readonly status: Finding['status']
}

export type Neighbours = Readonly<Record<RelationKind, readonly Neighbour[]>>

export interface FindingDetail {
  readonly finding: Finding
  /** What this finding says of others. */
  readonly relations: Neighbours
  /** What others say of this finding. */
  readonly relatedBy: Neighbours
  readonly conflicts: readonly Conflict[]
  readonly topics: readonly string[]
}

export interface TopicDetail {
  readonly topic: Topic
  readonly findings: readonly Finding[]
}

export interface KnowledgeStats {
  readonly findings: number
  readonly conflicts: number
  readonly topics: readonly { readonly name: string; readonly findings: number }[]
  readonly byStatus: Readonly<Record<string, number>>
  readonly byConfidence: Readonly<Record<string, number>>
  readonly byTag: Readonly<Record<string, number>>
  readonly relations: Readonly<Record<string, number>>
  /** Names the state of the files this was built from. */
  readonly digest: string
  /** The file that holds the index; null when it lives in memory. */
  readonly index: string | null
}

interface Origin {
  readonly digest: string
  readonly index: string | null
}

export class KnowledgeBase {
  readonly #db: DatabaseSync
  readonly #origin: Origin
  readonly #search: Search

  constructor(db: DatabaseSync, origin: Origin) {
    this.#db = db
    this.#origin = origin
    this.#search = createSearch(db)
  }

  search(question: string, options: SearchOptions = {}): SearchAnswer {
    return this.#search(question, options)
  }

  finding(id: number): Finding | null {
    // SQLite takes whole numbers only; any other number is nobody's id.
    if (!Number.isSafeInteger(id)) return null
    return this.#things<Finding>('select json from findings where id = ?', id)[0] ?? null
  }

  findings(): Finding[] {
    return this.#things('select json from findings order by id')
  }

  topics(): Topic[] {
    return this.#things('select json from topics order by name')
  }

  conflicts(): Conflict[] {
    return this.#things('select json from conflicts order by name')
  }

  detail(id: number): FindingDetail | null {
    const finding = this.finding(id)
    if (finding === null) return null
    const names = (conflict: Conflict): boolean =>
      conflict.stands.includes(id) || conflict.claims.some((claim) => claim.id === id)
    return {
      finding,
      relations: this.#neighbours(id, { from: 'source', to: 'target' }),
      relatedBy: this.#neighbours(id, { from: 'target', to: 'source' }),
      conflicts: this.conflicts().filter(names),
      topics: this.topics()
        .filter((topic) => belongs(finding, topic))
        .map((topic) => topic.name),
    }
  }

  topic(name: string): TopicDetail | null {
    const topic = this.topics().find((one) => one.name === name)
    if (topic === undefined) return null
    return { topic, findings: this.findings().filter((finding) => belongs(finding, topic)) }
  }

  stats(): KnowledgeStats {
    const findings = this.findings()
    return {
      findings: findings.length,
      conflicts: this.conflicts().length,
      topics: this.topics().map((topic) => ({
        name: topic.name,
        findings: findings.filter((finding) => belongs(finding, topic)).length,
      })),
      byStatus: this.#counts('status', 'findings'),
      byConfidence: this.#counts('confidence', 'findings'),
      byTag: this.#counts('tag', 'tags'),
      relations: this.#counts('kind', 'relations'),
      ...this.#origin,
    }
  }

  close(): void {
    this.#db.close()
  }

  #things<Thing>(sql: string, ...values: number[]): Thing[] {
    const rows = this.#db.prepare(sql).all(...values)
    return rows.map((row) => JSON.parse(String(row['json'])) as Thing)
  }

  #neighbours(id: number, way: { from: string; to: string }): Neighbours {
    const rows = this.#db.prepare(
      `select findings.json from relations join findings on findings.id = relations.${way.to}
       where relations.${way.from} = ? and relations.kind = ? order by findings.id`,
    )
    const of = (kind: RelationKind): Neighbour[] =>
      rows.all(id, kind).map((row) => {
        const other = JSON.parse(String(row['json'])) as Finding
        return { id: other.id, claim: other.claim, status: other.status }
      })
    return {
      supports: of('supports'),
      contradicts: of('contradicts'),
      supersedes: of('supersedes'),
      seeAlso: of('seeAlso'),
    }
  }

  #counts(column: string, table: string): Record<string, number> {
    const rows = this.#db
      .prepare(
        `select ${column} as name, count(*) as count from ${table} group by 1 order by 2 desc, 1`,
      )
      .all()
    return Object.fromEntries(rows.map((row) => [String(row['name']), Number(row['count'])]))
  }
}

function belongs(finding: Finding, topic: Topic): boolean {
  return topic.tags.some((tag) => tag === '*' || finding.tags.includes(tag))
}
