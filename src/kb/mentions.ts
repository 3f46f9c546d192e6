// What topics and conflicts say about each finding. They put it in other words than the finding does,
// as the text of a link describes the page it leads to, so search looks there too.
import { citedIds } from './citations.ts'
import type { Knowledge } from './types.ts'

export function collectMentions(knowledge: Knowledge): ReadonlyMap<number, string> {
  const mentions = new Map<number, string[]>()
  const add = (ids: readonly number[], text: string): void => {
    for (const id of ids) mentions.set(id, [...(mentions.get(id) ?? []), text])
  }
  const addSentences = (text: string): void => {
    for (const sentence of sentencesOf(text)) add(citedIds(sentence), withoutCitations(sentence))
  }
  for (const topic of knowledge.topics) {
    for (const { what, value, cites } of topic.figures) add(cites, `${what}: ${value}`)
    addSentences(topic.know)
    for (const pitfall of topic.pitfalls) addSentences(pitfall)
    for (const { question, answer } of topic.questions) {
      addSentences(answer)
      add(citedIds(answer).slice(0, 1), question)
    }
    for (const { text } of topic.more) addSentences(text)
  }
  for (const { title, use, stands, claims } of knowledge.conflicts) {
    add([...new Set([...stands, ...claims.map(({ id }) => id)])], title)
    add(stands, use)
  }
  return new Map([...mentions].map(([id, texts]) => [id, [...new Set(texts)].join('\n')]))
}

function sentencesOf(text: string): string[] {
  return text.split(/\n+|(?<=[.:;?!])\s+/).filter(Boolean)
}

function withoutCitations(sentence: string): string {
  return sentence.replace(/\(?\bkb#\d+(?:,\s*kb#\d+)*\)?/g, '').trim()
}
