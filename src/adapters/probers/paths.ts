// Routes and reachability towards peers. The same connection is tried from our own process and from a
// program of the system: where only ours fails, Local Network privacy is in the way.
import { type Fact, chainFact, known, unknown } from '../../core/machine-facts/fact.ts'
import { subnetOf } from '../../core/machine-facts/ipv4.ts'
import { probeLimits } from '../../core/machine-facts/limits.ts'
import type { ConnectOutcome, PathFacts, Platform } from '../../core/machine-facts/machine.ts'
import type { Route } from '../../core/machine-facts/network.ts'
import type { CommandOutcome, ConnectResult, MachineAccess } from '../../ports/machine-access.ts'
import type { PathTarget } from '../../ports/prober.ts'
import { parseRouteGet } from './mac/network-extras.ts'
import { textOf } from './outcome.ts'

export interface PathContext {
  readonly machine: string
  readonly platform: Platform
  readonly access: MachineAccess
  /** The routing table, for systems (or captures) where asking for one route is not possible. */
  readonly routes: Fact<readonly Route[]>
}

export async function probePath(context: PathContext, target: PathTarget): Promise<PathFacts> {
  const [routeInterface, ping, fromUs, fromSystem] = await Promise.all([
    routeTo(context, target.address),
    pingTo(context, target.address),
    connectFromUs(context, target),
    connectFromSystem(context, target),
  ])
  return { ...target, machine: context.machine, routeInterface, ping, fromUs, fromSystem }
}

async function routeTo(context: PathContext, address: string): Promise<Fact<string>> {
  const argv =
    context.platform === 'macos'
      ? ['route', '-n', 'get', address]
      : ['ip', '-o', 'route', 'get', address]
  const outcome = await context.access.runCommand(argv, {
    timeoutMs: probeLimits.commandTimeoutMs,
  })
  const asked = chainFact(
    textOf(argv[0] ?? '', outcome),
    context.platform === 'macos' ? parseRouteGet : parseIpRouteGet,
  )
  if (asked.known) return asked
  const fromTable = chainFact(context.routes, (routes) => routeInterfaceFor(routes, address))
  return fromTable.known ? fromTable : asked
}

export function parseIpRouteGet(text: string): Fact<string> {
  const name = /\bdev (\S+)/.exec(text)?.[1]
  return name === undefined ? unknown('not-printed', 'ip route prints no device') : known(name)
}

/** The longest prefix wins; of two equal ones the first, as the table is printed in order of use. */
export function routeInterfaceFor(routes: readonly Route[], address: string): Fact<string> {
  const lengthOf = (route: Route): number => Number(route.subnet.split('/')[1])
  const fitting = routes
    .filter((one) => subnetOf({ address, prefixLength: lengthOf(one) }) === one.subnet)
    .toSorted((a, b) => lengthOf(b) - lengthOf(a))
  const best = fitting[0]
  return best === undefined
    ? unknown('not-printed', `the routing table has no way to ${address}`)
    : known(best.interface)
}

async function pingTo(context: PathContext, address: string): Promise<Fact<boolean>> {
  const timeout = context.platform === 'macos' ? ['-t', '2'] : ['-W', '2']
  const outcome = await context.access.runCommand(['ping', '-c', '1', ...timeout, address], {
    timeoutMs: probeLimits.commandTimeoutMs,
  })
  if (outcome.kind === 'exited' && /\b0(\.0)?% packet loss/.test(outcome.stdout)) return known(true)
  if (outcome.kind === 'exited' && /100(\.0)?% packet loss/.test(outcome.stdout))
    return known(false)
  const text = textOf('ping', outcome)
  return text.known ? unknown('not-understood', 'ping printed no count of packets') : text
}

async function connectFromUs(
  context: PathContext,
  target: PathTarget,
): Promise<Fact<ConnectOutcome>> {
  if (target.port === null) return unknown('not-applicable', 'no port was named to connect to')
  const result = await context.access.connectTcp({
    host: target.address,
    port: target.port,
    timeoutMs: probeLimits.connectTimeoutMs,
  })
  return outcomeOfConnect(result)
}

function outcomeOfConnect(result: ConnectResult): Fact<ConnectOutcome> {
  if (result.kind === 'connected') return known('connected')
  if (result.kind === 'not-captured')
    return unknown('not-captured', 'the captures hold no such connection')
  const byCode: Readonly<Record<string, ConnectOutcome>> = {
    ECONNREFUSED: 'refused',
    EHOSTUNREACH: 'unreachable',
    ENETUNREACH: 'unreachable',
    ETIMEDOUT: 'timed-out',
  }
  const outcome = byCode[result.code]
  return outcome === undefined
    ? unknown('not-understood', `the connection failed with ${result.code}`)
    : known(outcome)
}

async function connectFromSystem(
  context: PathContext,
  target: PathTarget,
): Promise<Fact<ConnectOutcome>> {
  if (context.platform !== 'macos')
    return unknown('not-applicable', 'only macOS guards the local network')
  if (target.port === null) return unknown('not-applicable', 'no port was named to connect to')
  const argv = ['/usr/bin/nc', '-z', '-v', '-G', '3', target.address, String(target.port)]
  const outcome = await context.access.runCommand(argv, {
    timeoutMs: probeLimits.commandTimeoutMs,
  })
  return outcomeOfNc(outcome)
}

/** nc speaks on stderr and tells apart only success and failure by its code. */
export function outcomeOfNc(outcome: CommandOutcome): Fact<ConnectOutcome> {
  if (outcome.kind !== 'exited') {
    const text = textOf('nc', outcome)
    return text.known ? unknown('not-understood', 'nc gave no outcome') : text
  }
  if (outcome.exitCode === 0) return known('connected')
  const said = `${outcome.stderr}\n${outcome.stdout}`
  if (/refused/i.test(said)) return known('refused')
  if (/no route to host|unreachable/i.test(said)) return known('unreachable')
  if (/timed out|timeout/i.test(said)) return known('timed-out')
  return unknown('not-understood', `nc answered "${said.trim().slice(0, 80)}"`)
}
