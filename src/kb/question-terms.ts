// What a question asks for: its telling words, each with the other words that would do as well.
// Misspelt words are read as the nearest known one; phrases such as "turn on" count as one word.
import type { DatabaseSync } from 'node:sqlite'
import { createSpelling } from './spelling.ts'
import { stopWords } from './stop-words.ts'
import { joiners, phraseOf, wordsIn } from './words.ts'

export interface Alternative {
  /** A quoted phrase for the full-text index. */
  readonly phrase: string
  /** Whether the question itself has it, or a synonym of ours. */
  readonly own: boolean
}

export interface Term {
  readonly word: string
  /** The word itself as a quoted phrase. */
  readonly phrase: string
  readonly alternatives: readonly Alternative[]
}

export interface QuestionTerms {
  readonly terms: readonly Term[]
  /** Words that were read as others: "cabel" as "cable". */
  readonly readAs: Readonly<Record<string, string>>
  /** Whether the question was too long to be looked at whole. */
  readonly cut: boolean
}

/** A question has a few telling words; a pasted page is cut, so that its search stays quick. */
const termsMax = 24
const wordsReadMax = 96
const lettersReadMax = 8_000
const phraseWordsMax = 3

export function createQuestionReader(db: DatabaseSync): (question: string) => QuestionTerms {
  const correct = createSpelling(db)
  const known = db.prepare('select 1 from search where search match ? limit 1')
  const groups = db.prepare('select grp from synonyms where synonyms match ? and size = ?')
  const members = new Map<number, string[]>()
  for (const row of db.prepare('select grp, member from synonyms').all()) {
    const group = Number(row['grp'])
    members.set(group, [...(members.get(group) ?? []), String(row['member'])])
  }

  const isKnown = (word: string): boolean => known.get(phraseOf(word)) !== undefined
  const synonymsOf = (phrase: string, size: number): string[] =>
    groups.all(phraseOf(phrase), size).flatMap((row) => members.get(Number(row['grp'])) ?? [])

  function termOf(word: string, synonyms: readonly string[]): Term {
    const phrases = new Map([[phraseOf(word), true]])
    for (const other of [...synonyms, ...measureForms(word, synonymsOf)])
      if (!phrases.has(phraseOf(other))) phrases.set(phraseOf(other), false)
    return {
      word,
      phrase: phraseOf(word),
      alternatives: [...phrases].map(([phrase, own]) => ({ phrase, own })),
    }
  }

  return (question) => {
    const asked = wordsIn(question.slice(0, lettersReadMax))
    const readAs: Record<string, string> = {}
    const read = asked.slice(0, wordsReadMax).flatMap((word) => {
      if (stopWords.has(word) || isKnown(word) || synonymsOf(word, 1).length > 0) return [word]
      const parts = word.split(joiners)
      if (parts.length > 1) return parts
      const nearest = correct(word)
      if (nearest !== null) readAs[word] = nearest
      return [nearest ?? word]
    })
    const meaningful = read.some((word) => !stopWords.has(word))
    const terms = new Map<string, Term>()
    for (let at = 0; at < read.length && terms.size < termsMax;) {
      const phrase = longestPhrase(read.slice(at, at + phraseWordsMax), synonymsOf)
      const { words, synonyms } = phrase ?? { words: [read[at] ?? ''], synonyms: null }
      at += words.length
      const word = words.join(' ')
      if (words.length === 1 && meaningful && stopWords.has(word)) continue
      if (!terms.has(word)) terms.set(word, termOf(word, synonyms ?? synonymsOf(word, 1)))
    }
    return {
      terms: [...terms.values()],
      readAs,
      cut: question.length > lettersReadMax || asked.length > wordsReadMax,
    }
  }
}

/** The longest run of words at the start that is a phrase of our synonyms, if there is one. */
function longestPhrase(
  words: readonly string[],
  synonymsOf: (phrase: string, size: number) => string[],
): { words: readonly string[]; synonyms: string[] } | null {
  for (let size = words.length; size > 1; size -= 1) {
    const run = words.slice(0, size)
    if (run.every((word) => stopWords.has(word))) continue
    const synonyms = synonymsOf(run.join(' '), size)
    if (synonyms.length > 0) return { words: run, synonyms }
  }
  return null
}

/** "128gb" is also "128 GB", "80gbps" also "80 Gb/s", "50k" also "50,000". */
function measureForms(
  word: string,
  synonymsOf: (phrase: string, size: number) => string[],
): string[] {
  const [, amount, unit] = /^(\d+)([a-z]+)$/.exec(word) ?? []
  if (amount === undefined || unit === undefined) return []
  if (unit === 'k') return [`${amount} 000`]
  return [unit, ...synonymsOf(unit, 1)].map((form) => `${amount} ${form}`)
}
