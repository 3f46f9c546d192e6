// One launch, led by this daemon for a person at its command line: prepared, run, and ended everywhere.
import {
  type Course,
  type RankEnd,
  beginCourse,
  causeOf,
  describeEnd,
  exitCode,
  hasEnded,
  rankEnded,
} from '../../../core/launch/course.ts'
import { launchLimits } from '../../../core/launch/limits.ts'
import type {
  LaunchFilePart,
  LaunchInput,
  LaunchRequest,
  ToLaunchClient,
} from '../../../wire/launch-messages.ts'
import type { LaunchWorld } from '../../../core/launch/world.ts'
import type { LaunchSession } from './launch-session.ts'
import { type Candidate, LaunchRefused, environmentsOf } from './prepare.ts'

export interface LaunchParts {
  readonly machines: readonly Candidate[]
  /** Throws why the machine takes no launch. */
  readonly open: (machine: Candidate) => Promise<LaunchSession>
  readonly world: () => Promise<LaunchWorld>
  readonly toClient: (message: ToLaunchClient) => Promise<void>
}

type ReadyWorld = Exclude<LaunchWorld, { kind: 'refused' }>

export class Launch {
  readonly #parts: LaunchParts
  readonly #sessions = new Map<string, LaunchSession>()
  /** By rank, once the order is known. */
  #ranks: readonly LaunchSession[] = []
  #course: Course = beginCourse([])
  #isOver = false
  #finish: () => void = () => undefined
  readonly #finished = new Promise<void>((resolve) => (this.#finish = resolve))

  constructor(parts: LaunchParts) {
    this.#parts = parts
  }

  async run(request: LaunchRequest, files: AsyncIterable<LaunchFilePart>): Promise<void> {
    const { toClient } = this.#parts
    try {
      await this.#openAll()
      const [world] = await Promise.all([this.#parts.world(), this.#copy(files)])
      if (world.kind === 'refused') throw new LaunchRefused(world.reason)
      await this.#start(request, world)
      await this.#finished
      await toClient({
        kind: 'ended',
        code: exitCode(this.#course),
        cause: causeOf(this.#course),
        ranks: this.#course.ends.map((end, rank) => ({
          rank,
          machine: this.#course.machines[rank] ?? '',
          end: describeEnd(end),
        })),
      })
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      await toClient({ kind: 'refused', reason })
    } finally {
      this.end()
    }
  }

  async input(input: LaunchInput): Promise<void> {
    const [first] = this.#ranks
    if ('signal' in input) {
      // Before the ranks run there is nobody to forward it to: the launch itself is what it stops.
      if (this.#ranks.length === 0) this.end()
      for (const session of this.#ranks) void session.send({ kind: 'signal', signal: input.signal })
    } else if ('stdin' in input) await first?.write(input.stdin)
    else await first?.send({ kind: 'stdin-end' })
  }

  /** Every rank goes, on every machine; also when its client or its daemon does. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    for (const session of this.#sessions.values()) session.close()
    this.#finish()
  }

  async #openAll(): Promise<void> {
    const { machines, open } = this.#parts
    const refusals: string[] = []
    await Promise.all(
      machines.map(async (machine) => {
        try {
          const session = await open(machine)
          if (this.#isOver) session.close()
          else this.#sessions.set(machine.name, session)
        } catch (error) {
          refusals.push(error instanceof Error ? error.message : String(error))
        }
      }),
    )
    if (refusals.length > 0) throw new LaunchRefused(refusals.sort().join('; '))
  }

  async #copy(files: AsyncIterable<LaunchFilePart>): Promise<void> {
    for await (const part of files)
      await Promise.all([...this.#sessions.values()].map((session) => session.send(part)))
  }

  async #start(request: LaunchRequest, world: ReadyWorld): Promise<void> {
    const ranks = world.order.map((name) => {
      const machine = this.#parts.machines.find((one) => one.name === name)
      const session = this.#sessions.get(name)
      if (machine === undefined || session === undefined)
        throw new LaunchRefused(`${name} is part of the world but not of the launch`)
      return { id: machine.id, session }
    })
    const environments = await environmentsOf(world, ranks)
    if (this.#isOver) throw new LaunchRefused('it was ended before its ranks had started')
    this.#course = beginCourse(world.order)
    this.#ranks = ranks.map(({ session }) => session)
    for (const [rank, session] of this.#ranks.entries()) {
      session.listen({
        output: (stream, data) => this.#parts.toClient({ kind: 'output', rank, stream, data }),
        ended: (end) => this.#rankEnded(rank, end),
      })
    }
    await this.#parts.toClient({
      kind: 'world',
      backend: world.kind === 'jaccl' && world.shape === 'ring' ? 'jaccl-ring' : world.kind,
      why: world.why,
      machines: [...world.order],
    })
    await Promise.all(
      this.#ranks.map((session, rank) => {
        const { set, unset, files } = environments[rank] ?? { set: {}, unset: [], files: [] }
        return session.start({
          kind: 'start',
          script: request.script,
          args: request.args,
          env: { ...request.env, ...set },
          unset: [...unset],
          files: [...files],
          hasInput: rank === 0,
        })
      }),
    )
  }

  #rankEnded(rank: number, end: RankEnd): void {
    const { course, stop } = rankEnded(this.#course, rank, end)
    this.#course = course
    for (const other of stop) void this.#ranks[other]?.send({ kind: 'stop' })
    // A machine that cannot end its rank must not keep the person waiting.
    if (stop.length > 0) setTimeout(() => this.#finish(), launchLimits.stopMsMax).unref()
    if (hasEnded(course)) this.#finish()
  }
}
