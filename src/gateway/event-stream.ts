// A stream of small messages on a raw response, as server-sent events or as lines: cheap per message, kept
// alive in silence, and bounded for readers that do not read.
import type { ServerResponse } from 'node:http'
import { limits } from '../core/limits.ts'

/** Above this the reader is behind: small events are better joined than queued. */
const congestedBytes = limits.clientBufferBytesMax / 4

/** How far the prompt has been read, as far as anyone has said. */
export interface Progress {
  readonly done: number
  readonly total: number
}

export interface EventStreamOptions {
  /** What is written in silence, in the protocol's own form. */
  readonly keepAlive: (progress: Progress | null) => string
  readonly contentType?: string
}

export class EventStream {
  readonly #response: ServerResponse
  readonly #options: EventStreamOptions
  #timer: NodeJS.Timeout | null = null
  #open = false
  #lastWriteMs = 0
  #progress: Progress | null = null

  constructor(response: ServerResponse, options: EventStreamOptions) {
    this.#response = response
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#open
  }

  open(): void {
    if (this.#open) return
    this.#open = true
    this.#response.writeHead(200, {
      'content-type': this.#options.contentType ?? 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      connection: 'keep-alive',
      'x-accel-buffering': 'no',
    })
    this.#response.socket?.setNoDelay(true)
    this.#response.flushHeaders()
    this.#lastWriteMs = performance.now()
    this.#timer = setInterval(() => this.#beat(), 1000)
  }

  /** True while the reader is far behind; callers then join what they would have sent. */
  get isCongested(): boolean {
    return this.#response.writableLength > congestedBytes
  }

  onDrain(run: () => void): void {
    this.#response.on('drain', run)
  }

  progressed(done: number, total: number): void {
    this.#progress = { done, total }
  }

  data(json: string): void {
    this.#write(`data: ${json}\n\n`)
  }

  event(name: string, json: string): void {
    this.#write(`event: ${name}\ndata: ${json}\n\n`)
  }

  line(json: string): void {
    this.#write(`${json}\n`)
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    if (!this.#response.writableEnded) this.#response.end()
  }

  #write(text: string): void {
    this.#lastWriteMs = performance.now()
    if (!this.#response.destroyed) this.#response.write(text)
  }

  #beat(): void {
    if (performance.now() - this.#lastWriteMs < limits.keepAliveEveryMs || this.isCongested) return
    this.#write(this.#options.keepAlive(this.#progress))
  }
}
