// A server-sent event stream on a raw response: cheap per event, kept alive in silence, and bounded for
// readers that do not read.
import type { ServerResponse } from 'node:http'
import { limits } from '../core/limits.ts'

/** Above this the reader is behind: small events are better joined than queued. */
const congestedBytes = limits.clientBufferBytesMax / 4

export class EventStream {
  readonly #response: ServerResponse
  readonly #keepAlive: () => string
  #timer: NodeJS.Timeout | null = null
  #open = false
  #lastWriteMs = 0

  constructor(response: ServerResponse, options: { keepAlive: () => string }) {
    this.#response = response
    this.#keepAlive = options.keepAlive
  }

  get isOpen(): boolean {
    return this.#open
  }

  open(headers: Readonly<Record<string, string>> = {}): void {
    if (this.#open) return
    this.#open = true
    this.#response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      connection: 'keep-alive',
      'x-accel-buffering': 'no',
      ...headers,
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

  data(json: string): void {
    this.#write(`data: ${json}\n\n`)
  }

  event(name: string, json: string): void {
    this.#write(`event: ${name}\ndata: ${json}\n\n`)
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
    this.#write(this.#keepAlive())
  }
}
