// A day in the life of a full cluster: faults every few minutes for 24 simulated hours, and a look every
// hour at what must not grow.
import type { Figures } from './figures.ts'
import { Run, type SeedResult } from './run-seed.ts'

export interface SoakHour {
  readonly hour: number
  /** Largest journal on any disk now. */
  readonly journalBytes: number
  /** Entries in the largest state of any machine now. */
  readonly stateEntries: number
  /** Cluster messages per machine and second over the hour, beats apart. */
  readonly messagesPerSecond: number
  readonly termsBegun: number
  readonly requestsOpen: number
  /** Of the whole simulation, after sixteen machines have lived so long. */
  readonly heapMb: number
}

export interface SoakResult {
  readonly hours: readonly SoakHour[]
  readonly result: SeedResult
  /** What grew though it must not, in words. */
  readonly growth: readonly string[]
}

const hourMs = 3_600_000
const faultsPerHour = 8

export function runSoak(order: {
  seed: number
  hours: number
  machines: number
  onHour?: (hour: SoakHour) => void
}): SoakResult {
  const { seed, machines } = order
  const minutes = order.hours * 60
  const run = new Run(seed, { machines, minutes, faults: Math.round(order.hours * faultsPerHour) })
  const hours: SoakHour[] = []
  let before: Figures = { ...run.figures }
  for (let hour = 1; hour <= order.hours; hour++) {
    run.until(hour * hourMs)
    const seen = look(run, hour, before)
    before = { ...run.figures }
    hours.push(seen)
    order.onHour?.(seen)
  }
  run.until(run.endMs)
  return { hours, result: run.finish(), growth: growthOf(hours) }
}

function look({ world, clients, figures }: Run, hour: number, before: Figures): SoakHour {
  const states = world.hosts.flatMap((host) => host.life?.machine.state ?? [])
  const entries = states.map(
    ({ peers, holdings, starts, stops, failures }) =>
      peers.size + holdings.size + starts.size + stops.size + failures.length,
  )
  const journals = world.hosts.map((host) => host.disk.current?.length ?? 0)
  const messages = figures.messages - before.messages
  return {
    hour,
    journalBytes: Math.max(0, ...journals),
    stateEntries: Math.max(0, ...entries),
    messagesPerSecond: messages / world.hosts.length / (hourMs / 1000),
    termsBegun: figures.terms - before.terms,
    requestsOpen: clients.open.length,
    heapMb: Math.round(process.memoryUsage().heapUsed / 1e6),
  }
}

/** The last quarter of the day against the second: whatever grows by itself shows in between. */
function growthOf(hours: readonly SoakHour[]): readonly string[] {
  const quarter = Math.floor(hours.length / 4)
  if (quarter === 0) return []
  const early = hours.slice(quarter, quarter * 2)
  const late = hours.slice(-quarter)
  const growth: string[] = []
  const compare = (what: string, of: (hour: SoakHour) => number, factor: number): void => {
    const [then, now] = [early, late].map((part) => Math.max(...part.map(of)))
    if (then !== undefined && now !== undefined && now > then * factor)
      growth.push(`${what} grew from ${then.toFixed(1)} to ${now.toFixed(1)}`)
  }
  compare('the journal', (hour) => hour.journalBytes, 1.6)
  compare("a machine's state", (hour) => hour.stateEntries, 1.6)
  compare('the rate of messages', (hour) => hour.messagesPerSecond, 3)
  return growth
}
