// Known errors of JACCL, ring and Metal in the log of a rank, in words that help. The table is data; each
// row names the checks of the doctor that find the cause.
import { type Citation, findingIds } from '../citation.ts'

export interface KnownError {
  readonly id: string
  readonly pattern: RegExp
  readonly cause: string
  readonly next: string
  /** Numbers of the doctor's checks that look at the cause. */
  readonly checks: readonly number[]
  /** Findings of the knowledge base that carry the explanation. */
  readonly cites: readonly Citation[]
  /** The rank that prints it is a victim: another one failed first. */
  readonly consequence?: true
}

export interface Translation {
  readonly id: string
  /** The line as the rank printed it. */
  readonly line: string
  readonly cause: string
  readonly next: string
  readonly checks: readonly number[]
  readonly kbFindings: readonly number[]
  readonly consequence: boolean
}

/** First match wins, so the particular stands before the general. */
export const knownErrors: readonly KnownError[] = [
  {
    id: 'rtr-22',
    pattern: /\[jaccl\] Changing queue pair to RTR failed with errno 22\b/,
    cause:
      'the port has no IPv4 address where JACCL looks for it: none at all, not at GID 1, or the port is in a bridge',
    next: 'Give both ends of the cable a static IPv4 address, out of the bridge.',
    checks: [10, 11, 12],
    cites: ['kb#2014', 'kb#2016'],
  },
  {
    id: 'rtr-96',
    pattern: /\[jaccl\] Changing queue pair to RTR failed with errno 96\b/,
    cause:
      'the port is in a bridge or its address sits at another GID; or the driver has run out of resources after crashes or a long idle time',
    next: 'Look at checks 10 and 12; end ranks that were left; then restart the Macs.',
    checks: [10, 12, 18],
    cites: ['kb#2026'],
  },
  {
    id: 'rtr-60',
    pattern: /\[jaccl\] Changing queue pair to RTR failed with errno 60\b/,
    cause:
      "the peer's address is not reachable over this cable: another cable or device is named, or an address has changed",
    next: 'Run "bushel topology" again so that the devices are read anew; look at the addresses and routes; restart if the cabling changed since the last start.',
    checks: [5, 11, 12, 13],
    cites: ['kb#2027'],
  },
  {
    id: 'rtr-16',
    pattern: /\[jaccl\] Changing queue pair to RTR failed with errno 16\b/,
    cause: 'a rank that crashed earlier still holds resources of the driver',
    next: 'End ranks that were left, then restart the Mac.',
    checks: [18],
    cites: ['kb#2033'],
  },
  {
    id: 'queue-pairs',
    pattern: /\[jaccl\] Creating the queue pair failed/,
    cause: 'the device has no queue pair left: it has ten, and trying again never helps',
    next: 'Run fewer groups on this Mac, and end ranks that were left.',
    checks: [18],
    cites: ['kb#2011'],
  },
  {
    id: 'no-ipv4-gid',
    pattern: /\[jaccl\] No IPv4-mapped GID/,
    cause: 'the Thunderbolt port has no IPv4 address',
    next: 'Give the port a static IPv4 address.',
    checks: [11],
    cites: ['kb#2014'],
  },
  {
    id: 'protection-domain',
    pattern: /\[jaccl\] Couldn't allocate protection domain/,
    cause:
      'the port of that device is down, the device is not on this Mac, or earlier crashes have used up the driver',
    next: 'Use a device whose port is active; if it is, restart the Mac.',
    checks: [9, 18],
    cites: ['kb#2028'],
  },
  {
    id: 'protection-domain-boot',
    pattern: /ibv_alloc_pd\b.*fail/i,
    cause: 'right after a start the link sometimes comes up wrong',
    next: 'Unplug the cable and plug it in again.',
    checks: [9],
    cites: ['kb#2028'],
  },
  {
    id: 'memory-region-crash',
    pattern: /\bibv_reg_mr/,
    cause: 'RDMA was started on a device that is absent or down (older MLX crashes there)',
    next: 'Update MLX, and look at checks 3 to 9 before RDMA is used.',
    checks: [3, 4, 9],
    cites: ['kb#2028'],
  },
  {
    id: 'cable-pulled',
    pattern: /\btbt_post_recv\b/,
    cause:
      'the cable was pulled, or the link dropped, in the middle of a transfer; both ranks die of it',
    next: 'Start the group again, and do not move cables while it runs.',
    checks: [7, 9],
    cites: ['kb#2018'],
  },
  {
    id: 'device-not-found',
    pattern: /Could not find device (\S+) \((\d+) available\)/,
    cause: 'the named RDMA device does not exist here; names can change after a restart',
    next: 'Run "bushel topology" again so that the names are read anew.',
    checks: [4],
    cites: ['kb#2008'],
  },
  {
    id: 'connect-65',
    pattern: /\[(?:jaccl|ring)\] Couldn't connect \(error: 65\)/,
    cause:
      'macOS answers "no route to host": Local Network privacy stops Bushel, or the route is wrong',
    next: 'Look at checks 13 and 15.',
    checks: [13, 14, 15],
    cites: ['kb#2021'],
  },
  {
    id: 'connect-60',
    pattern: /\[(?:jaccl|ring)\] Couldn't connect \(error: (?:60|61|110|111)\)/,
    cause:
      'the rank to connect to does not listen: it started too late, not at all, or at another address',
    next: 'Start rank 0 first; look at its log and at the firewall of its machine.',
    checks: [14, 16],
    cites: ['kb#2029'],
  },
  {
    id: 'peer-closed',
    pattern: /\[jaccl\] Recv failed with errno=2\b/,
    cause:
      'the side channel was closed because another rank failed first; the number is left over from something else',
    next: 'Read the log of the other ranks: the first error is there.',
    checks: [],
    cites: ['kb#2030'],
    consequence: true,
  },
  {
    id: 'recv-60',
    pattern: /\[jaccl\] Recv failed with errno=60\b/,
    cause: 'the peer did not answer on the side channel in time',
    next: 'Read the log of the other ranks, and look at addresses and routes.',
    checks: [13, 14],
    cites: ['kb#2030'],
    consequence: true,
  },
  {
    id: 'recv-failed',
    pattern: /\[jaccl\] Recv failed with error code (-?\d+)/,
    cause: 'a transfer failed on the link',
    next: 'Look at the cable and at the state of the port, then start the group again.',
    checks: [7, 9],
    cites: ['kb#2017'],
  },
  {
    id: 'mesh-incomplete',
    pattern: /do not form a valid mesh|Incomplete mesh/,
    cause: 'not every pair of Macs is cabled',
    next: 'Add the missing cable, or let the group use a ring.',
    checks: [5],
    cites: ['kb#316'],
  },
  {
    id: 'rdma-off',
    pattern: /does not seem to have RDMA enabled/,
    cause: 'the machine lists no RDMA device',
    next: 'Switch RDMA on in Recovery; on Thunderbolt 4 it is not possible.',
    checks: [2, 3, 4],
    cites: ['kb#413', 'kb#2004'],
  },
  {
    id: 'ring-peer-lost',
    pattern: /\[ring\] (?:connection to a peer was lost|Socket \d+ was closed by the peer)/,
    cause: 'a neighbouring rank ended',
    next: 'Read the log of the other ranks: the first error is there.',
    checks: [],
    cites: ['kb#2037'],
    consequence: true,
  },
  {
    id: 'gpu-timeout',
    pattern: /kIOGPUCommandBufferCallbackErrorTimeout/,
    cause: 'the GPU waited seconds for a peer and was stopped by the system',
    next: 'Look whether the peer is alive; keep communication off the GPU stream.',
    checks: [14],
    cites: ['kb#2031'],
  },
  {
    id: 'aborted',
    pattern: /0xe00002eb/i,
    cause: 'the driver aborted an operation; no cause is known',
    next: 'Please send it with "bushel selftest --bundle FILE".',
    checks: [],
    cites: ['kb#2035'],
  },
]

/** Every known error in a log, once each, in the order of their first appearance. */
export function translateRankLog(lines: readonly string[]): readonly Translation[] {
  const found = new Map<string, Translation>()
  for (const line of lines) {
    const row = knownErrors.find((one) => one.pattern.test(line))
    if (row === undefined || found.has(row.id)) continue
    const { id, cause, next, checks, cites } = row
    found.set(id, {
      id,
      line: line.trim(),
      cause,
      next,
      checks,
      kbFindings: findingIds(cites),
      consequence: row.consequence === true,
    })
  }
  return [...found.values()]
}

export interface RankLog {
  readonly rank: number
  readonly machine: string
  readonly lines: readonly string[]
}

/**
 * The error that explains a failed group: a cause before its consequences, and among causes the one of the
 * lowest rank, since ranks do not share a clock to tell which came first.
 */
export function explainFailure(
  logs: readonly RankLog[],
): (Translation & { readonly rank: number; readonly machine: string }) | null {
  const all = logs.flatMap(({ rank, machine, lines }) =>
    translateRankLog(lines).map((one) => ({ ...one, rank, machine })),
  )
  const ranked = all.toSorted(
    (a, b) => Number(a.consequence) - Number(b.consequence) || a.rank - b.rank,
  )
  return ranked[0] ?? null
}

/** A cause as a person should read it: what the rank said, what that means, and the next step. */
export function explainCause(cause: string): string {
  const [known] = translateRankLog(cause.split(/\n| \| /))
  return known === undefined ? cause : `${cause}. This means: ${meaningOf(known)}`
}

export function meaningOf({ cause, next, checks }: Translation): string {
  const look =
    checks.length === 0
      ? ''
      : ` ("bushel doctor" looks at this in ${checks.length === 1 ? 'check' : 'checks'} ${checks.join(', ')})`
  return `${cause}. ${next}${look}`
}
