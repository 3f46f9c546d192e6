// The launches that other machines, or this one, run here: refused unless the owner allows them, counted so
// that the daemon's end can wait for theirs, and swept away if an earlier daemon has left any.
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { duplexPair } from 'node:stream'
import type { MachineId } from '../../core/ids.ts'
import { BulkError, type BulkService } from '../peers/bulk.ts'
import { type LaunchGround, LaunchedRank } from './launched-rank.ts'

export interface LaunchHostOptions extends LaunchGround {
  readonly home: string
  /** In the name of each launch, so that what is left of one is known in the process table. */
  readonly machine: MachineId
  readonly randomHex: (bytes: number) => string
  /** Why launches are refused here; null when the owner allows them. Asked at each launch. */
  readonly refusal: () => string | null
  readonly note: (text: string, about: Readonly<Record<string, unknown>>) => void
}

export class LaunchHost {
  readonly #options: LaunchHostOptions
  readonly #ranks = new Set<LaunchedRank>()

  constructor(options: LaunchHostOptions) {
    this.#options = options
    // Keepers remove their folders; one that was killed together with its daemon could not.
    rmSync(this.#folder, { recursive: true, force: true })
  }

  get #folder(): string {
    return join(this.#options.home, 'launches')
  }

  /** For other machines. */
  get service(): BulkService {
    return {
      name: 'launch',
      serve: async (_request, transfer) => {
        const refusal = this.#options.refusal()
        if (refusal !== null) throw new BulkError(refusal)
        const { from, socket } = transfer
        await this.#run(socket, transfer.open({}), from)
      },
    }
  }

  /** For this machine itself: the other end of a stream, or why not. */
  open(): Duplex {
    const refusal = this.#options.refusal()
    if (refusal !== null) throw new BulkError(refusal)
    const [ours, theirs] = duplexPair()
    void this.#run(theirs, Buffer.alloc(0), 'this machine')
    return ours
  }

  /** Ends every script and waits until all is gone. */
  async stop(): Promise<void> {
    const ranks = [...this.#ranks]
    for (const rank of ranks) rank.stop()
    await Promise.all(ranks.map((rank) => rank.ended))
  }

  async #run(stream: Duplex, head: Buffer, from: string): Promise<void> {
    const id = `${this.#options.machine}-${this.#options.randomHex(8)}`
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    const folder = join(this.#folder, id)
    this.#options.note('a launch begins here', { launch: id, from })
    const rank = new LaunchedRank({ ground: this.#options, folder, stream, head })
    this.#ranks.add(rank)
    await rank.ended
    this.#ranks.delete(rank)
    this.#options.note('a launch has ended here', { launch: id })
  }
}
