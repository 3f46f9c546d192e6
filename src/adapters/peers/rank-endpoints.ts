// Where ranks of a wider group listen for each other: an address on the best link to the machine that will
// dial, and a port that is free now.
import { createServer } from 'node:net'
import { type GroupPlan, placedRanks } from '../../core/cluster/group-plan.ts'
import { rankLinks } from '../../core/cluster/rank-links.ts'
import type { Endpoint } from '../../core/cluster/record.ts'
import type { MachineId } from '../../core/ids.ts'
import type { MeasuredLink } from '../../core/links/measured-link.ts'
import type { EndpointOutcome, EndpointSource } from '../../ports/endpoint-source.ts'
import { withZone } from './addresses.ts'
import { type LinkAddress, linkAddresses } from './interfaces.ts'
import type { LinkStatus } from './network.ts'

export interface RankEndpointsOptions {
  readonly self: MachineId
  readonly links: () => readonly RankLink[]
  /** How good a link is by its kind, when its owner said so: higher is better. */
  readonly preference: (link: string) => number
  readonly nameOf: (machine: MachineId) => string
  /** This machine's addresses; asked anew each time, cables come and go. */
  readonly addresses?: () => readonly LinkAddress[]
}

/** A link with what it was found to carry, once it was measured. */
export interface RankLink extends Pick<
  LinkStatus,
  'peer' | 'link' | 'localAddress' | 'remoteAddress' | 'roundTripMinMs'
> {
  readonly measured: Pick<MeasuredLink, 'gbps' | 'slow'> | null
}

type Reserved = { rank: number; endpoint: Endpoint }

export class RankEndpoints implements EndpointSource {
  readonly #options: RankEndpointsOptions

  constructor(options: RankEndpointsOptions) {
    this.#options = options
  }

  reserve(
    plan: GroupPlan,
    ranks: readonly number[],
    done: (outcome: EndpointOutcome) => void,
  ): void {
    void this.#answer(plan, ranks, done)
  }

  /** The same address as this machine must dial it: a link-local one needs the name of our own link. */
  dialable(endpoint: Endpoint, machine: MachineId): Endpoint {
    if (!endpoint.host.toLowerCase().startsWith('fe80:')) return endpoint
    const plain = endpoint.host.replace(/%.*$/, '')
    const link = this.#options
      .links()
      .find((one) => one.peer === machine && one.remoteAddress.replace(/%.*$/, '') === plain)
    return link === undefined ? endpoint : { ...endpoint, host: `${plain}%${localLink(link.link)}` }
  }

  /** For a program that is no group of ours: our address towards that machine, and a port that is free now. */
  async facing(machine: MachineId): Promise<{ host: string; port: number }> {
    return freeEndpoint(this.#facing(machine, 'IPv4'))
  }

  async #answer(
    plan: GroupPlan,
    ranks: readonly number[],
    done: (outcome: EndpointOutcome) => void,
  ): Promise<void> {
    done(await this.#find(plan, ranks))
  }

  async #find(plan: GroupPlan, ranks: readonly number[]): Promise<EndpointOutcome> {
    const endpoints: Reserved[] = []
    // One after the other, all held open until the last is found: no two ranks get the same port.
    const held: (() => void)[] = []
    try {
      for (const rank of ranks)
        endpoints.push({ rank, endpoint: await this.#forRank(plan, rank, held) })
      return { ok: true, endpoints }
    } catch (error) {
      return { ok: false, reason: error instanceof Error ? error.message : String(error) }
    } finally {
      for (const release of held) release()
    }
  }

  async #forRank(plan: GroupPlan, rank: number, held: (() => void)[]): Promise<Endpoint> {
    const placed = placedRanks(plan)
    const { from, ringPrevious } = rankLinks(plan, rank)
    const machineOf = (other: number | null): MachineId =>
      (other === null ? undefined : placed[other]?.machine) ?? this.#options.self
    const host = this.#facing(machineOf(from), 'any')
    const port = await freePort(host, held)
    if (ringPrevious === null) return { host, port }
    const me = placed[rank]
    const stage = me === undefined ? undefined : plan.stages[me.stage]
    // All ranks of a JACCL world meet the first one, not its neighbour alone.
    const meeting = me?.worldRank === 0 ? stage?.meeting : undefined
    const ringHost = meeting ?? this.#facing(machineOf(ringPrevious), 'IPv4')
    return { host, port, ring: { host: ringHost, port: await freePort(ringHost, held) } }
  }

  /** Our address on the best link to that machine; MLX's ring speaks IPv4 only. */
  #facing(machine: MachineId, family: 'any' | 'IPv4'): string {
    if (machine === this.#options.self) return '127.0.0.1'
    const own = (this.#options.addresses ?? linkAddresses)()
    const rated = bestFirst(
      this.#options.links().filter((link) => link.peer === machine),
      (link) => this.#options.preference(localLink(link.link)),
    )
    const name = this.#options.nameOf(machine)
    if (rated.length === 0) throw new Error(`no link to ${name} is up`)
    for (const link of rated) {
      const local = localLink(link.link)
      const isFour = !link.localAddress.includes(':')
      if (isFour) return link.localAddress
      const four = own.find((one) => one.link === local && one.family === 'IPv4')
      if (four !== undefined) return four.address
      if (family === 'any') return withZone(link.localAddress, local)
    }
    throw new Error(
      `no link to ${name} has an IPv4 address, which MLX's ring needs; give the cable's ports addresses ("bushel doctor" says how)`,
    )
  }
}

/** By kind, then by round trip. A link that was found slow gives way to those that carry more. */
export function bestFirst(
  links: readonly RankLink[],
  preference: (link: RankLink) => number,
): readonly RankLink[] {
  const sorted = links.toSorted(
    (a, b) =>
      preference(b) - preference(a) ||
      (a.roundTripMinMs ?? Infinity) - (b.roundTripMinMs ?? Infinity),
  )
  const [first] = sorted
  if (first?.measured?.slow !== true) return sorted
  const carries = ({ measured }: RankLink): number => measured?.gbps?.slower ?? 0
  return sorted.toSorted((a, b) => carries(b) - carries(a))
}

/** A link between two machines is named by both of its ends; ours comes first. */
function localLink(link: string): string {
  return link.split('~')[0] ?? link
}

/** A port that is free on this address now; nobody holds it any more when this returns. */
export async function freeEndpoint(host: string): Promise<{ host: string; port: number }> {
  const held: (() => void)[] = []
  const port = await freePort(host, held)
  for (const release of held) release()
  return { host, port }
}

function freePort(host: string, held: (() => void)[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', (error) => {
      reject(new Error(`cannot listen on ${host}: ${error.message}`))
    })
    server.listen({ host, port: 0, exclusive: true }, () => {
      const address = server.address()
      held.push(() => server.close())
      if (typeof address === 'object' && address !== null) resolve(address.port)
      else reject(new Error(`cannot listen on ${host}`))
    })
  })
}
