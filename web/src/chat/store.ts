// The chats of this page and the answers that are being written into them. Knows no browser and no React.
import { type Answer, newAnswer } from './answer.ts'
import {
  type Chat,
  type Turn,
  byRecency,
  isAnswering,
  lastTurn,
  messagesFor,
  withAnswer,
} from './conversation.ts'
import {
  type KeyValueStore,
  clearChats,
  loadChat,
  loadChats,
  removeChat,
  saveChat,
} from './history.ts'
import { type AnswerPorts, RunningAnswer } from './running-answer.ts'

export interface ChatState {
  /** Newest first. */
  readonly chats: readonly Chat[]
  /** Null while a new chat has no question yet. */
  readonly current: Chat | null
  /** The browser refused to keep the chat: it lives only as long as this page. */
  readonly isUnsaved: boolean
}

export interface ChatPorts extends AnswerPorts {
  readonly storage: KeyValueStore
  /** Null when nobody can say. */
  readonly isModelReady: (model: string) => boolean | null
  readonly newId: () => string
  readonly wallMs: () => number
}

export class ChatStore {
  readonly #ports: ChatPorts
  readonly #listeners = new Set<() => void>()
  readonly #running = new Map<string, RunningAnswer>()
  #state: ChatState

  constructor(ports: ChatPorts) {
    this.#ports = ports
    this.#state = { chats: loadChats(ports.storage), current: null, isUnsaved: false }
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly getState = (): ChatState => this.#state

  /** Asks in the current chat, or begins one. */
  ask(question: string, model: string): void {
    const { current } = this.#state
    if (isAnswering(current)) return
    this.#begin({ chat: current, before: current?.turns ?? [], question, model })
  }

  /** Asks the last question again, as it was or changed. */
  askAgain(model: string, changed?: string): void {
    const { current } = this.#state
    const last = lastTurn(current)
    if (last === null || isAnswering(current)) return
    const before = current?.turns.slice(0, -1) ?? []
    this.#begin({ chat: current, before, question: changed ?? last.question, model })
  }

  stop(): void {
    this.#running.get(this.#state.current?.id ?? '')?.stop()
  }

  open(id: string): void {
    const current = this.#state.chats.find((chat) => chat.id === id) ?? null
    this.#set({ current })
  }

  startNew(): void {
    this.#set({ current: null })
  }

  remove(id: string): void {
    const { chats, current } = this.#state
    this.#set({
      chats: chats.filter((chat) => chat.id !== id),
      current: current?.id === id ? null : current,
    })
    this.#running.get(id)?.stop()
    removeChat(this.#ports.storage, id)
  }

  clear(): void {
    this.#set({ chats: [], current: null })
    for (const running of this.#running.values()) running.stop()
    clearChats(this.#ports.storage)
  }

  /** Another page of this browser changed a chat. */
  reload(id: string): void {
    if (this.#running.has(id)) return
    const { chats, current } = this.#state
    const chat = loadChat(this.#ports.storage, id)
    const others = chats.filter((other) => other.id !== id)
    this.#set({
      chats: chat === null ? others : [chat, ...others].sort(byRecency),
      current: current?.id === id ? chat : current,
    })
  }

  /** Keeps what has arrived so far: the page may be about to close. */
  saveRunning(): void {
    for (const [id, running] of this.#running) {
      running.flush()
      this.#save(id)
    }
  }

  #begin(order: {
    chat: Chat | null
    before: readonly Turn[]
    question: string
    model: string
  }): void {
    const { newId, wallMs, isModelReady } = this.#ports
    const { chat, before, question, model } = order
    const answer = newAnswer({ model, includesLoad: isModelReady(model) === false })
    const turn = { id: newId(), question, answer }
    const asked: Chat = {
      id: chat?.id ?? newId(),
      turns: [...before, turn],
      askedMs: wallMs(),
    }
    const others = this.#state.chats.filter((other) => other.id !== asked.id)
    this.#set({ chats: [asked, ...others], current: asked })
    const show = (answer: Answer): void => this.#put(asked.id, turn.id, answer)
    const running = new RunningAnswer(this.#ports, answer, show)
    this.#running.set(asked.id, running)
    void running.run(messagesFor(before, question)).finally(() => {
      // After a stop the next question may already be running in its place.
      if (this.#running.get(asked.id) === running) this.#running.delete(asked.id)
      this.#save(asked.id)
    })
    // After the request has gone out: saving takes its time when there are many chats.
    this.#save(asked.id)
  }

  #put(chatId: string, turnId: string, answer: Answer): void {
    const { chats, current } = this.#state
    const chat = chats.find((other) => other.id === chatId)
    // It was deleted in the meantime.
    if (chat === undefined) return
    const next = withAnswer(chat, turnId, answer)
    this.#set({
      chats: chats.map((other) => (other.id === chatId ? next : other)),
      current: current?.id === chatId ? next : current,
    })
  }

  #save(id: string): void {
    const chat = this.#state.chats.find((other) => other.id === id)
    if (chat === undefined) return
    const isUnsaved = !saveChat(this.#ports.storage, chat)
    if (isUnsaved !== this.#state.isUnsaved) this.#set({ isUnsaved })
  }

  #set(change: Partial<ChatState>): void {
    this.#state = { ...this.#state, ...change }
    for (const listener of this.#listeners) listener()
  }
}
