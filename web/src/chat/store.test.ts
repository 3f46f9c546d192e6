import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ChatEvent } from '../api/chat-events.ts'
import type { ChatQuestion } from '../api/client.ts'
import { RequestFailed } from '../api/failure.ts'
import { memoryStorage } from '../browser-storage.ts'
import { type Answer, isRunning } from './answer.ts'
import { loadChats } from './history.ts'
import { ChatStore } from './store.ts'

interface Asked {
  readonly question: ChatQuestion
  readonly report: (event: ChatEvent) => void
  readonly signal: AbortSignal
  readonly end: () => void
  readonly fail: (error: unknown) => void
}

/** A store whose server, clock and drawing are in the test's hands. */
function setUp(ready: boolean | null = true) {
  const storage = memoryStorage()
  const asked: Asked[] = []
  const frames: (() => void)[] = []
  let ids = 0
  let nowMs = 0
  const store = new ChatStore({
    storage,
    ask: (question, report, signal) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      signal.addEventListener('abort', () => reject(new DOMException('stopped', 'AbortError')))
      asked.push({ question, report, signal, end: resolve, fail: reject })
      return promise
    },
    isModelReady: () => ready,
    newId: () => `id${(ids += 1)}`,
    wallMs: () => nowMs,
    monotonicMs: () => nowMs,
    onNextFrame: (run) => void frames.push(run),
  })
  const last = (): Asked => asked.at(-1) ?? assert.fail('nothing was asked')
  const answer = (): Answer =>
    store.getState().current?.turns.at(-1)?.answer ?? assert.fail('there is no answer')
  const draw = (): void => {
    for (const run of frames.splice(0)) run()
  }
  const finish = async (text: string): Promise<void> => {
    last().report({ kind: 'text-received', text })
    last().report({ kind: 'answer-finished', reason: 'stop' })
    last().end()
    await settle()
  }
  const advance = (ms: number): void => void (nowMs += ms)
  return { store, storage, asked, frames, last, answer, draw, finish, advance }
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('ChatStore.ask() streams an answer into a new chat and keeps it', async () => {
  const { store, storage, last, answer, draw, advance } = setUp()
  store.ask('Capital of France?', 'm')
  advance(200)
  last().report({ kind: 'text-received', text: 'Par' })
  last().report({ kind: 'text-received', text: 'is' })
  draw()
  assert.equal(answer().text, 'Paris')
  assert.equal(answer().firstTokenMs, 200)
  last().report({ kind: 'answer-finished', reason: 'stop' })
  last().end()
  await settle()
  assert.equal(answer().status, 'done')
  assert.equal(loadChats(storage)[0]?.turns[0]?.answer.text, 'Paris')
})

test('ChatStore draws once for many tokens', () => {
  const { store, last, frames } = setUp()
  store.ask('Hi', 'm')
  for (let token = 0; token < 100; token++) last().report({ kind: 'text-received', text: 'x' })
  assert.equal(frames.length, 1)
})

test('ChatStore.ask() tells the model the conversation so far', async () => {
  const { store, last, finish } = setUp()
  store.ask('one', 'm')
  await finish('1')
  store.ask('two', 'm')
  assert.deepEqual(last().question, {
    model: 'm',
    messages: [
      { role: 'user', content: 'one' },
      { role: 'assistant', content: '1' },
      { role: 'user', content: 'two' },
    ],
  })
})

test('ChatStore.ask() does nothing while the chat is being answered', () => {
  const { store, asked } = setUp()
  store.ask('one', 'm')
  store.ask('two', 'm')
  assert.equal(asked.length, 1)
})

test('ChatStore.stop() aborts, keeps the text, and lets nothing in afterwards', async () => {
  const { store, last, answer, draw } = setUp()
  store.ask('long', 'm')
  last().report({ kind: 'text-received', text: 'Once' })
  store.stop()
  assert.equal(last().signal.aborted, true)
  assert.deepEqual([answer().status, answer().text], ['stopped', 'Once'])
  last().report({ kind: 'text-received', text: ' more' })
  draw()
  await settle()
  assert.deepEqual([answer().status, answer().text], ['stopped', 'Once'])
})

test('ChatStore.askAgain() right after stop() can itself be stopped', async () => {
  const { store, last, answer, asked } = setUp()
  store.ask('long', 'm')
  store.stop()
  store.askAgain('m')
  await settle()
  assert.equal(asked.length, 2)
  assert.equal(isRunning(answer()), true)
  store.stop()
  assert.equal(last().signal.aborted, true)
  assert.equal(answer().status, 'stopped')
})

test('ChatStore.askAgain() replaces the last turn, as it was or changed', async () => {
  const { store, last, finish } = setUp()
  store.ask('one', 'm')
  await finish('1')
  store.ask('two', 'm')
  await finish('2')
  store.askAgain('other', 'three')
  assert.deepEqual(
    store.getState().current?.turns.map(({ question }) => question),
    ['one', 'three'],
  )
  assert.equal(last().question.model, 'other')
  assert.equal(last().question.messages.at(-1)?.content, 'three')
  assert.equal(last().question.messages.length, 3)
})

test('ChatStore shows a failed request in the conversation', async () => {
  const { store, last, answer } = setUp()
  store.ask('one', 'm')
  last().fail(new RequestFailed({ kind: 'unreachable' }))
  await settle()
  assert.equal(answer().status, 'failed')
  assert.deepEqual(answer().failure, { kind: 'unreachable' })
})

test('ChatStore goes on answering a chat that is not on the screen', async () => {
  const { store, finish } = setUp()
  store.ask('one', 'm')
  const id = store.getState().current?.id ?? ''
  store.startNew()
  await finish('1')
  assert.equal(store.getState().current, null)
  store.open(id)
  assert.equal(store.getState().current?.turns[0]?.answer.text, '1')
})

test('ChatStore.remove() stops the answer and nothing of the chat comes back', async () => {
  const { store, storage, last } = setUp()
  store.ask('one', 'm')
  last().report({ kind: 'text-received', text: 'x' })
  store.remove(store.getState().current?.id ?? '')
  await settle()
  assert.equal(last().signal.aborted, true)
  assert.deepEqual(store.getState().chats, [])
  assert.deepEqual(loadChats(storage), [])
})

test('ChatStore.clear() stops everything and forgets it', async () => {
  const { store, storage, asked } = setUp()
  store.ask('one', 'm')
  store.startNew()
  store.ask('two', 'm')
  store.clear()
  await settle()
  assert(asked.every(({ signal }) => signal.aborted))
  assert.deepEqual(loadChats(storage), [])
})

test('ChatStore.saveRunning() keeps what has arrived but was never drawn', () => {
  const { store, storage, last } = setUp()
  store.ask('one', 'm')
  last().report({ kind: 'text-received', text: 'unseen' })
  store.saveRunning()
  const [turn] = loadChats(storage)[0]?.turns ?? []
  assert.deepEqual([turn?.answer.text, turn?.answer.status], ['unseen', 'stopped'])
})

test('ChatStore.reload() takes over what another page wrote, but never over a running answer', async () => {
  const { store, storage, finish } = setUp()
  store.ask('one', 'm')
  const id = store.getState().current?.id ?? ''
  store.reload(id)
  assert.equal(store.getState().current?.turns[0]?.answer.status, 'waiting')
  await finish('1')
  const [chat] = loadChats(storage)
  assert(chat !== undefined)
  storage.removeItem(`bushel.chat.1.${id}`)
  store.reload(id)
  assert.equal(store.getState().current, null)
})

test('ChatStore notes that an answer had to wait for its model, only when somebody knew', () => {
  for (const [ready, noted] of [
    [false, true],
    [true, false],
    [null, false],
  ] as const) {
    const { store, answer } = setUp(ready)
    store.ask('one', 'm')
    assert.equal(answer().includesLoad, noted)
  }
})
