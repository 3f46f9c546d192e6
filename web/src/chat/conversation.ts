// A chat is a list of turns, each a question with its answer. Pure.
import type { ChatMessage } from '../api/client.ts'
import type { Answer } from './answer.ts'
import { isRunning } from './answer.ts'

export interface Turn {
  readonly id: string
  readonly question: string
  readonly answer: Answer
}

export interface Chat {
  readonly id: string
  readonly turns: readonly Turn[]
  /** Wall clock of the last question. */
  readonly askedMs: number
}

/** What the model is told: turns that got an answer, then the question. A failed turn would only confuse it. */
export function messagesFor(before: readonly Turn[], question: string): readonly ChatMessage[] {
  const messages: ChatMessage[] = []
  for (const turn of before) {
    if (turn.answer.text.trim() === '') continue
    messages.push({ role: 'user', content: turn.question })
    messages.push({ role: 'assistant', content: turn.answer.text })
  }
  messages.push({ role: 'user', content: question })
  return messages
}

const titleCharsMax = 60

export function titleOf(chat: Chat): string {
  const line = (chat.turns[0]?.question ?? '').trim().split('\n')[0]?.trim() ?? ''
  if (line === '') return 'New chat'
  // By code points: half a surrogate pair would show as a box.
  const chars = Array.from(line)
  return chars.length <= titleCharsMax
    ? line
    : `${chars
        .slice(0, titleCharsMax - 1)
        .join('')
        .trimEnd()}…`
}

export function lastTurn(chat: Chat | null): Turn | null {
  return chat?.turns.at(-1) ?? null
}

export function isAnswering(chat: Chat | null): boolean {
  const turn = lastTurn(chat)
  return turn !== null && isRunning(turn.answer)
}

export function withAnswer(chat: Chat, turnId: string, answer: Answer): Chat {
  return {
    ...chat,
    turns: chat.turns.map((turn) => (turn.id === turnId ? { ...turn, answer } : turn)),
  }
}

/** Newest question first. */
export function byRecency(a: Chat, b: Chat): number {
  return b.askedMs - a.askedMs || (a.id < b.id ? -1 : 1)
}
