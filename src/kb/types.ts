// What the knowledge base consists of. The files are checked against schema.ts, which needs a library
// that a search does not; these types need none.

export const statuses = ['stands', 'corrected', 'outdated', 'disputed'] as const
export const confidences = ['verified', 'high', 'medium', 'low', 'hypothetical'] as const
export const bases = [
  'measured',
  'read-in-source',
  'documentation',
  'paper',
  'reported',
  'deduced',
  'opinion',
  'hypothetical',
] as const

export type Status = (typeof statuses)[number]
export type Confidence = (typeof confidences)[number]
export type Basis = (typeof bases)[number]

export interface Relations {
  readonly supports: readonly number[]
  readonly contradicts: readonly number[]
  readonly supersedes: readonly number[]
  readonly seeAlso: readonly number[]
}

export interface Finding {
  readonly id: number
  readonly claim: string
  readonly status: Status
  readonly confidence: Confidence
  readonly basis: Basis
  readonly date: string
  readonly checked?: string | undefined
  readonly tags: readonly string[]
  readonly sources: readonly string[]
  readonly earlier?: string | undefined
  readonly correction?: string | undefined
  readonly evidence: string
  readonly relations: Relations
}

export interface Conflict {
  readonly name: string
  readonly title: string
  readonly use: string
  readonly stands: readonly number[]
  readonly claims: readonly { readonly id: number; readonly says: string }[]
  readonly reason: string
}

export interface TopicQuestion {
  readonly question: string
  readonly answer: string
  readonly cites: readonly number[]
}

export interface Topic {
  readonly name: string
  readonly title: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly related: readonly string[]
  readonly figures: readonly {
    readonly what: string
    readonly value: string
    readonly cites: readonly number[]
  }[]
  readonly know: string
  readonly pitfalls: readonly string[]
  readonly questions: readonly TopicQuestion[]
  /** Further sections, in the file's order, such as the areas of the whole subject. */
  readonly more: readonly { readonly heading: string; readonly text: string }[]
}

export interface Knowledge {
  readonly findings: readonly Finding[]
  readonly conflicts: readonly Conflict[]
  readonly topics: readonly Topic[]
  readonly synonyms: readonly (readonly string[])[]
}
