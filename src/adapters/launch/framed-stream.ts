// Messages over a two-way stream, checked on arrival, one after the other. Silence of the other side is
// noticed: a machine that was switched off closes no connection.
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import type { z } from 'zod'
import { launchLimits } from '../../core/launch/limits.ts'
import { FrameReader, encodeFrame } from '../peers/frame-reader.ts'

export interface FramedEvents<Message> {
  /** The next one waits until this one is dealt with. */
  message(message: Message): Promise<void> | void
  /** Once, whatever the reason. */
  closed(reason: string): void
}

const frameBytesMax = launchLimits.partBytesMax * 3

export class FramedStream<Outgoing, Incoming> {
  readonly #stream: Duplex
  readonly #timer: NodeJS.Timeout
  #heardMs = performance.now()
  #isBusy = false
  #reason = 'the connection was closed'

  constructor(about: {
    stream: Duplex
    head: Buffer
    schema: z.ZodType<Incoming>
    events: FramedEvents<Incoming>
  }) {
    const { stream, head, schema, events } = about
    this.#stream = stream
    stream.on('error', (error) => (this.#reason = error.message))
    if (head.length > 0) stream.unshift(head)
    this.#timer = setInterval(() => this.#beat(), launchLimits.aliveEveryMs)
    void this.#read(schema, events)
  }

  /** Settles when there is room for more; at once when nobody listens any more. */
  async send(message: Outgoing): Promise<void> {
    const stream = this.#stream
    if (stream.destroyed || !stream.writable) return
    if (!stream.write(encodeFrame(message)))
      await Promise.race([once(stream, 'drain'), once(stream, 'close')]).catch(() => undefined)
  }

  /** What was sent still goes out. */
  end(): void {
    clearInterval(this.#timer)
    this.#stream.end()
    setTimeout(() => this.#stream.destroy(), launchLimits.aliveEveryMs).unref()
  }

  #beat(): void {
    void this.send({ kind: 'alive' } as Outgoing)
    // While we ourselves do not listen, nobody is silent.
    if (this.#isBusy) this.#heardMs = performance.now()
    if (performance.now() - this.#heardMs <= launchLimits.silenceMsMax) return
    this.#reason = `nothing was heard for ${launchLimits.silenceMsMax / 1000} s`
    this.#stream.destroy()
  }

  async #read(schema: z.ZodType<Incoming>, events: FramedEvents<Incoming>): Promise<void> {
    const reader = new FrameReader(frameBytesMax)
    try {
      for await (const chunk of this.#stream) {
        this.#heardMs = performance.now()
        for (const bytes of reader.push(chunk as Buffer)) {
          this.#isBusy = true
          await events.message(schema.parse(JSON.parse(bytes.toString('utf8'))))
          this.#isBusy = false
        }
      }
    } catch (error) {
      if (!this.#stream.destroyed)
        this.#reason = `a message was not understood: ${error instanceof Error ? error.message : String(error)}`
    }
    clearInterval(this.#timer)
    this.#stream.destroy()
    events.closed(this.#reason)
  }
}
