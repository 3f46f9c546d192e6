// What a screen reader says about an answer: that it has begun, and how it ended. Never every token.
import { explainFailure } from '../api/failure.ts'
import { assertNever } from '../assert-never.ts'
import type { Answer } from './answer.ts'

/** A longer answer is better read at one's own pace than spoken without a break. */
const spokenCharsMax = 600

export function announcementOf(answer: Answer | null): string {
  if (answer === null) return ''
  switch (answer.status) {
    case 'waiting':
    case 'streaming':
      return 'Answering.'
    case 'stopped':
      return 'Stopped.'
    case 'failed': {
      const { title, advice } = explainFailure(answer.failure ?? { kind: 'cut-off' })
      return `${title}. ${advice}`
    }
    case 'done': {
      if (answer.text.length <= spokenCharsMax) return `Answer: ${answer.text}`
      const words = answer.text.trim().split(/\s+/).length
      return `The answer is complete: ${words} words.`
    }
    default:
      return assertNever(answer.status)
  }
}
