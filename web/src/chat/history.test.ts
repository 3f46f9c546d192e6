import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryStorage } from '../browser-storage.ts'
import { newAnswer } from './answer.ts'
import type { Chat } from './conversation.ts'
import {
  type KeyValueStore,
  chatIdOfKey,
  clearChats,
  historyLimits,
  loadChats,
  saveChat,
} from './history.ts'

function chat(id: string, askedMs: number, text = 'Paris'): Chat {
  const answer = {
    ...newAnswer({ model: 'm', includesLoad: false }),
    status: 'done' as const,
    text,
  }
  return { id, askedMs, turns: [{ id: `${id}-1`, question: 'Capital?', answer }] }
}

const ids = (store: KeyValueStore): readonly string[] => loadChats(store).map(({ id }) => id)

test('saveChat() and loadChats() keep chats whole, newest first', () => {
  const store = memoryStorage()
  saveChat(store, chat('old', 1))
  saveChat(store, chat('new', 2))
  assert.deepEqual(loadChats(store), [chat('new', 2), chat('old', 1)])
})

test('loadChats() passes over what it cannot read and what is not its own', () => {
  const store = memoryStorage()
  saveChat(store, chat('good', 1))
  const entry = store.getItem('bushel.chat.1.good') ?? ''
  store.setItem('bushel.chat.1.torn', entry.slice(0, 40))
  store.setItem('bushel.chat.1.empty', 'null')
  store.setItem('bushel.chat.1.shape', '{"id":"shape","askedMs":1,"turns":[{"answer":{}}]}')
  store.setItem('bushel.chat.1.other', entry)
  store.setItem('bushel.model', 'm')
  assert.deepEqual(ids(store), ['good'])
})

test('loadChats() shows an answer that was running when the page closed as stopped', () => {
  const store = memoryStorage()
  const running = chat('a', 1)
  const [turn] = running.turns
  assert(turn !== undefined)
  const answer = { ...turn.answer, status: 'streaming' as const }
  saveChat(store, { ...running, turns: [{ ...turn, answer }] })
  assert.equal(loadChats(store)[0]?.turns[0]?.answer.status, 'stopped')
})

test('saveChat() drops the oldest chats beyond the limit', () => {
  const store = memoryStorage()
  for (let index = 0; index < historyLimits.chatsMax + 5; index++)
    saveChat(store, chat(`c${index}`, index))
  assert.equal(ids(store).length, historyLimits.chatsMax)
  assert.equal(ids(store).at(-1), 'c5')
})

test('saveChat() keeps all chats together below the limit of characters', () => {
  const store = memoryStorage()
  const text = 'x'.repeat(historyLimits.charsMax / 4)
  for (let index = 0; index < 8; index++) saveChat(store, chat(`c${index}`, index, text))
  assert.deepEqual(ids(store), ['c7', 'c6', 'c5'])
})

test('saveChat() keeps the newest turns of a chat that is too long by itself', () => {
  const store = memoryStorage()
  const [turn] = chat('long', 1, 'x'.repeat(historyLimits.charsPerChatMax / 6)).turns
  assert(turn !== undefined)
  const turns = Array.from({ length: 10 }, (_, index) => ({ ...turn, id: `t${index}` }))
  saveChat(store, { id: 'long', askedMs: 1, turns })
  const kept = loadChats(store)[0]?.turns.map(({ id }) => id) ?? []
  assert.equal(kept.at(-1), 't9')
  assert(kept.length >= 3 && kept.length < 7, `kept ${kept.length}`)
})

/** Refuses to hold more than so many characters, like a browser. */
function crampedStorage(charsMax: number): KeyValueStore {
  const inner = memoryStorage()
  return {
    get length() {
      return inner.length
    },
    getItem: (key) => inner.getItem(key),
    removeItem: (key) => inner.removeItem(key),
    key: (index) => inner.key(index),
    setItem(key, value) {
      let chars = value.length
      for (let index = 0; index < inner.length; index++) {
        const other = inner.key(index) ?? ''
        if (other !== key) chars += inner.getItem(other)?.length ?? 0
      }
      if (chars > charsMax) throw new DOMException('full', 'QuotaExceededError')
      inner.setItem(key, value)
    },
  }
}

test('saveChat() makes room in a full browser, oldest first, and says when there is none', () => {
  const size = JSON.stringify(chat('c0', 0)).length
  const store = crampedStorage(size * 3 + 10)
  for (let index = 0; index < 5; index++)
    assert.equal(saveChat(store, chat(`c${index}`, index)), true)
  assert.deepEqual(ids(store), ['c4', 'c3', 'c2'])
  assert.equal(saveChat(store, chat('huge', 9, 'x'.repeat(size * 4))), false)
})

test('clearChats() removes chats and nothing else', () => {
  const store = memoryStorage()
  store.setItem('bushel.model', 'm')
  saveChat(store, chat('a', 1))
  saveChat(store, chat('b', 2))
  clearChats(store)
  assert.deepEqual(ids(store), [])
  assert.equal(store.getItem('bushel.model'), 'm')
})

test('chatIdOfKey() knows its own keys', () => {
  assert.equal(chatIdOfKey('bushel.chat.1.abc'), 'abc')
  assert.equal(chatIdOfKey('bushel.model'), null)
})
