// Chats kept in the browser: one entry each, so that two open pages do not overwrite each other.
import { type Answer, answerStatuses, isRunning } from './answer.ts'
import { type Chat, type Turn, byRecency } from './conversation.ts'

export type KeyValueStore = Pick<Storage, 'getItem' | 'setItem' | 'removeItem' | 'key' | 'length'>

const prefix = 'bushel.chat.1.'

/** Browsers give a site about five million characters; these leave room for the rest. */
export const historyLimits = {
  chatsMax: 100,
  charsMax: 3_000_000,
  charsPerChatMax: 1_000_000,
} as const

export function chatIdOfKey(key: string): string | null {
  return key.startsWith(prefix) ? key.slice(prefix.length) : null
}

export function loadChats(store: KeyValueStore): readonly Chat[] {
  return keysOf(store)
    .flatMap((key) => loadChat(store, key.slice(prefix.length)) ?? [])
    .sort(byRecency)
}

export function loadChat(store: KeyValueStore, id: string): Chat | null {
  const chat = parseChat(store.getItem(prefix + id))
  return chat?.id === id ? chat : null
}

/** False when the browser has no room for it even after older chats were dropped. */
export function saveChat(store: KeyValueStore, chat: Chat): boolean {
  const text = serialise(chat)
  const others = loadChats(store).filter((other) => other.id !== chat.id)
  let chars = text.length
  let kept = 0
  const older: string[] = []
  for (const other of others) {
    chars += store.getItem(prefix + other.id)?.length ?? 0
    if (++kept >= historyLimits.chatsMax || chars > historyLimits.charsMax)
      store.removeItem(prefix + other.id)
    else older.push(other.id)
  }
  for (;;) {
    try {
      store.setItem(prefix + chat.id, text)
      return true
    } catch {
      const oldest = older.pop()
      if (oldest === undefined) return false
      store.removeItem(prefix + oldest)
    }
  }
}

export function removeChat(store: KeyValueStore, id: string): void {
  store.removeItem(prefix + id)
}

export function clearChats(store: KeyValueStore): void {
  for (const key of keysOf(store)) store.removeItem(key)
}

function keysOf(store: KeyValueStore): readonly string[] {
  const keys: string[] = []
  for (let index = 0; index < store.length; index++) {
    const key = store.key(index)
    if (key?.startsWith(prefix) === true) keys.push(key)
  }
  return keys
}

/** Of a very long chat the newest turns are kept. */
function serialise(chat: Chat): string {
  let turns = chat.turns
  let text = JSON.stringify(chat)
  while (text.length > historyLimits.charsPerChatMax && turns.length > 1) {
    turns = turns.slice(Math.ceil(turns.length / 4))
    text = JSON.stringify({ ...chat, turns })
  }
  return text
}

function parseChat(text: string | null): Chat | null {
  try {
    const chat = JSON.parse(text ?? 'null') as Chat | null
    if (chat === null || typeof chat.id !== 'string' || typeof chat.askedMs !== 'number')
      return null
    return { ...chat, turns: chat.turns.map(parseTurn) }
  } catch {
    // Written by another version, or damaged: as good as absent.
    return null
  }
}

function parseTurn(turn: Turn): Turn {
  const { answer } = turn
  const isSound =
    typeof turn.id === 'string' &&
    typeof turn.question === 'string' &&
    typeof answer.text === 'string' &&
    typeof answer.reasoning === 'string' &&
    typeof answer.model === 'string' &&
    answerStatuses.includes(answer.status)
  if (!isSound) throw new TypeError('not a turn')
  return { ...turn, answer: settled(answer) }
}

/** Nobody reads the stream of an answer that was cut off by closing the page. */
function settled(answer: Answer): Answer {
  return isRunning(answer) ? { ...answer, status: 'stopped' } : answer
}
