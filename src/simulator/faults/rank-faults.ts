// What ranks do: end, spin, run out of memory, ignore signals, keep what they held, and fail to load.
import type { SimHost } from '../host.ts'
import type { SimRank } from '../rank.ts'
import { type FaultKind, type FaultSite, momentary, nothingToUndo, runningHost } from './fault.ts'

/** A rank with work is the more interesting victim. */
function someRank(
  { world, random }: FaultSite,
  suits: (rank: SimRank) => boolean,
): SimRank | undefined {
  const living = [...world.farm.living].filter(suits)
  return random.pick(living.filter((rank) => rank.isBusy)) ?? random.pick(living)
}

const isReady = (rank: SimRank): boolean => rank.phase === 'ready'

function rankFault(
  name: string,
  weight: number,
  harm: (rank: SimRank, site: FaultSite) => { lastsMs: number; undo: () => void },
  suits: (rank: SimRank) => boolean = () => true,
): FaultKind {
  return {
    name,
    weight,
    begin(site) {
      const rank = someRank(site, suits)
      if (rank === undefined) return null
      const about = `${rank.load.group} on ${rank.host.spec.name}`
      return { about, ...harm(rank, site) }
    },
  }
}

const atOnce = { lastsMs: 0, undo: nothingToUndo }

function hostFault(
  name: string,
  weight: number,
  harm: (host: SimHost, site: FaultSite) => () => void,
): FaultKind {
  return {
    name,
    weight,
    begin(site) {
      const host = runningHost(site)
      if (host === undefined) return null
      const undo = harm(host, site)
      return { about: host.spec.name, lastsMs: site.random.between(3000, 40_000), undo }
    },
  }
}

const unkillable = rankFault(
  'kill-fails',
  2,
  (rank, { random }) => {
    rank.isUnkillable = true
    rank.ignoresTerm = true
    rank.isSpinning = true
    const undo = (): void => {
      rank.isUnkillable = false
    }
    return { lastsMs: random.between(3000, 50_000), undo }
  },
  isReady,
)

/** A disk that does not answer for a while, say. */
const loadStalls = rankFault(
  'load-stalls',
  1,
  (rank, { random }) => {
    rank.isSpinning = true
    const undo = (): void => {
      rank.isSpinning = false
    }
    return { lastsMs: random.between(1000, 30_000), undo }
  },
  (rank) => rank.phase === 'loading',
)

const memoryHeld = hostFault('memory-held', 1, (host, { world }) => {
  const [rank] = world.farm.livingOn(host)
  const bytes = rank?.load.limits.memoryBytesMax ?? 0
  host.memoryHeldBytes += bytes
  rank?.exit('the rank ended with signal SIGKILL')
  return () => {
    host.memoryHeldBytes -= bytes
  }
})

const loadFails = hostFault('half-loaded-model', 1, (host, { random }) => {
  const digest = random.pick(host.spec.models)?.digest
  if (digest !== undefined) host.brokenFiles.add(digest)
  return () => {
    if (digest !== undefined) host.brokenFiles.delete(digest)
  }
})

const portTaken = hostFault('port-taken', 1, (host) => {
  host.isPortTaken = true
  return () => {
    host.isPortTaken = false
  }
})

const slowLoad = hostFault('slow-load', 1, (host) => {
  host.isSlowToLoad = true
  return () => {
    host.isSlowToLoad = false
  }
})

const clientHangsUp: FaultKind = {
  name: 'client-hangs-up',
  weight: 2,
  begin({ clients, random }) {
    const request = random.pick(clients.open)
    if (request === undefined) return null
    clients.hangUp(request)
    return momentary(`gen-${request.answer.number}`)
  },
}

export const rankFaults: readonly FaultKind[] = [
  rankFault('rank-exit', 3, (rank) => {
    rank.exit('the rank ended with exit code 1')
    return atOnce
  }),
  rankFault('rank-out-of-memory', 1, (rank) => {
    rank.exit('the rank ended with signal SIGKILL: out of memory')
    return atOnce
  }),
  rankFault(
    'rank-spin',
    3,
    (rank) => {
      rank.isSpinning = true
      return atOnce
    },
    isReady,
  ),
  rankFault('term-ignored', 2, (rank) => {
    rank.ignoresTerm = true
    return atOnce
  }),
  unkillable,
  loadStalls,
  memoryHeld,
  loadFails,
  portTaken,
  slowLoad,
  clientHangsUp,
]
