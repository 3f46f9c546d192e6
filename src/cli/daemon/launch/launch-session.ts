// The leading end of one rank of a launch: what the machine says becomes answers to what it was asked, output,
// and one end.
import type { Duplex } from 'node:stream'
import { FramedStream } from '../../../adapters/launch/framed-stream.ts'
import type { RankEnd } from '../../../core/launch/course.ts'
import { launchLimits } from '../../../core/launch/limits.ts'
import {
  type FromLaunchedRank,
  type ToLaunchedRank,
  fromLaunchedRank,
} from '../../../wire/launch-messages.ts'

export interface SessionEvents {
  output(stream: 'stdout' | 'stderr', data: string): Promise<void>
  /** Once; the reason is told when it never got to run or was lost. */
  ended(end: RankEnd): void
}

type Answer = Extract<FromLaunchedRank, { kind: 'reserved' | 'started' | 'stdin-taken' }>

export class LaunchSession {
  readonly machine: string
  readonly #stream: FramedStream<ToLaunchedRank, FromLaunchedRank>
  #events: SessionEvents | null = null
  #end: RankEnd | null = null
  #waiting: {
    kind: Answer['kind']
    resolve: (answer: Answer) => void
    reject: (e: Error) => void
  }[] = []

  constructor(about: { machine: string; stream: Duplex; head: Buffer }) {
    this.machine = about.machine
    this.#stream = new FramedStream({
      ...about,
      schema: fromLaunchedRank,
      events: {
        message: (message) => this.#take(message),
        closed: (reason) => this.#finish({ kind: 'lost', reason }),
      },
    })
  }

  listen(events: SessionEvents): void {
    this.#events = events
    if (this.#end !== null) events.ended(this.#end)
  }

  send(message: ToLaunchedRank): Promise<void> {
    return this.#stream.send(message)
  }

  async reserve(facing: string, address: string | null): Promise<{ host: string; port: number }> {
    const answer = await this.#ask({ kind: 'reserve', facing, address }, 'reserved')
    return answer as Extract<Answer, { kind: 'reserved' }>
  }

  async start(message: Extract<ToLaunchedRank, { kind: 'start' }>): Promise<number> {
    return ((await this.#ask(message, 'started')) as Extract<Answer, { kind: 'started' }>).pid
  }

  /** Settles when the script has taken it, or has ended. */
  async write(data: string): Promise<void> {
    await this.#ask({ kind: 'stdin', data }, 'stdin-taken', null).catch(() => undefined)
  }

  close(): void {
    void this.#stream.send({ kind: 'stop' })
    this.#stream.end()
  }

  #ask(
    message: ToLaunchedRank,
    kind: Answer['kind'],
    msMax: number | null = launchLimits.prepareMsMax,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#end !== null) {
        reject(this.#failure())
        return
      }
      const timer =
        msMax === null
          ? undefined
          : setTimeout(() => reject(new Error(`${this.machine} did not answer in time`)), msMax)
      const settle = (act: () => void): void => {
        clearTimeout(timer)
        act()
      }
      this.#waiting.push({
        kind,
        resolve: (answer) => settle(() => resolve(answer)),
        reject: (error) => settle(() => reject(error)),
      })
      void this.#stream.send(message)
    })
  }

  async #take(message: FromLaunchedRank): Promise<void> {
    switch (message.kind) {
      case 'output':
        await this.#events?.output(message.stream, message.data)
        return
      case 'reserved':
      case 'started':
      case 'stdin-taken': {
        const at = this.#waiting.findIndex((one) => one.kind === message.kind)
        const [found] = at === -1 ? [] : this.#waiting.splice(at, 1)
        found?.resolve(message)
        return
      }
      case 'exited':
        this.#finish({ kind: 'exited', code: message.code, signal: message.signal })
        return
      case 'failed':
        this.#finish({ kind: 'lost', reason: message.reason })
        return
      case 'alive':
        return
    }
  }

  #finish(end: RankEnd): void {
    if (this.#end !== null) return
    this.#end = end
    for (const { reject } of this.#waiting) reject(this.#failure())
    this.#waiting = []
    this.#events?.ended(end)
  }

  #failure(): Error {
    const reason = this.#end?.kind === 'lost' ? this.#end.reason : 'its script has ended already'
    return new Error(`${this.machine}: ${reason}`)
  }
}
