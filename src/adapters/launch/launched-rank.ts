// One rank of a launch on this machine, led by another daemon (or our own) over a stream: takes the folder,
// finds a port, starts the script, and takes everything away when the stream ends.
import type { Duplex } from 'node:stream'
import { join } from 'node:path'
import type { MachineId } from '../../core/ids.ts'
import {
  type FromLaunchedRank,
  type ToLaunchedRank,
  launchSignals,
  toLaunchedRank,
} from '../../wire/launch-messages.ts'
import { FramedStream } from './framed-stream.ts'
import { KeptScript } from './kept-script.ts'
import { ReceivedFolder } from './received-folder.ts'

export interface LaunchGround {
  readonly python: string
  readonly keeper: string
  /** What Python and MLX need here; nothing that could carry a secret. */
  readonly env: () => Readonly<Record<string, string>>
  /** An address and a free port that the other machine can reach. */
  readonly endpointFacing: (
    machine: MachineId,
    address: string | null,
  ) => Promise<{ host: string; port: number }>
}

export class LaunchedRank {
  readonly #ground: LaunchGround
  readonly #folder: ReceivedFolder
  readonly #stream: FramedStream<FromLaunchedRank, ToLaunchedRank>
  #script: KeptScript | null = null
  /** Settles when nothing of it is left. */
  readonly ended: Promise<void>

  constructor(about: { ground: LaunchGround; folder: string; stream: Duplex; head: Buffer }) {
    this.#ground = about.ground
    this.#folder = new ReceivedFolder(about.folder)
    let closed: () => void = () => undefined
    const closing = new Promise<void>((resolve) => (closed = resolve))
    this.#stream = new FramedStream({
      ...about,
      schema: toLaunchedRank,
      events: {
        message: (message) => this.#take(message),
        closed: () => closed(),
      },
    })
    this.ended = closing.then(() => this.#clear())
  }

  stop(): void {
    this.#script?.stop()
    this.#stream.end()
  }

  async #clear(): Promise<void> {
    this.#script?.stop()
    await this.#script?.ended
    await this.#folder.remove()
  }

  async #take(message: ToLaunchedRank): Promise<void> {
    try {
      await this.#obey(message)
    } catch (error) {
      await this.#stream.send({
        kind: 'failed',
        reason: error instanceof Error ? error.message : String(error),
      })
      this.#stream.end()
    }
  }

  async #obey(message: ToLaunchedRank): Promise<void> {
    switch (message.kind) {
      case 'file':
        await this.#folder.take(message)
        return
      case 'reserve': {
        const { facing, address } = message
        const found = await this.#ground.endpointFacing(facing as MachineId, address)
        await this.#stream.send({ kind: 'reserved', ...found })
        return
      }
      case 'start':
        await this.#start(message)
        return
      case 'stdin':
        // Not awaited: a script that reads nothing must still hear signals.
        void this.#script
          ?.write(Buffer.from(message.data, 'base64'))
          .then(() => this.#stream.send({ kind: 'stdin-taken' }))
        return
      case 'stdin-end':
        this.#script?.endInput()
        return
      case 'signal':
        this.#script?.signal(launchSignals[message.signal])
        return
      case 'stop':
        this.#script?.stop()
        return
      case 'alive':
        return
    }
  }

  async #start(start: Extract<ToLaunchedRank, { kind: 'start' }>): Promise<void> {
    if (this.#script !== null) throw new Error('this rank was started already')
    const env: Record<string, string> = { ...this.#ground.env(), ...start.env }
    for (const name of start.unset) delete env[name]
    for (const { variable, content } of start.files)
      env[variable] = await this.#folder.addWorldFile(variable, content)
    const { root, files } = this.#folder
    this.#script = new KeptScript(
      {
        ...this.#ground,
        folder: root,
        workingFolder: files,
        script: join(files, start.script),
        args: start.args,
        env,
        hasInput: start.hasInput,
      },
      {
        started: (pid) => void this.#stream.send({ kind: 'started', pid }),
        output: (stream, data) =>
          this.#stream.send({ kind: 'output', stream, data: data.toString('base64') }),
        exited: (end) => {
          const message: FromLaunchedRank =
            'failed' in end ? { kind: 'failed', reason: end.failed } : { kind: 'exited', ...end }
          void this.#stream.send(message).then(() => this.#stream.end())
        },
      },
    )
  }
}
