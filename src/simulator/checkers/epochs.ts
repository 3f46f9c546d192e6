// S2: no machine obeys an epoch below the highest it has obeyed, in this life or an earlier one, and none
// obeys or orders anything before the epoch is on its disk.
import type { GroupMessage } from '../../core/cluster/messages.ts'
import { type Epoch, compareEpochs } from '../../core/cluster/record.ts'
import { type MachineState, holdingKey } from '../../core/cluster/state.ts'
import type { SimHost } from '../host.ts'
import type { Life } from '../life.ts'
import { rankNumber } from '../farm.ts'
import { type Checker, type Scene, nameOf } from './checker.ts'

type Order = Extract<GroupMessage, { epoch: Epoch }>

export function epochChecker({ world }: Scene): Checker {
  const { verdict } = world
  const highest = new Map<SimHost, Epoch>()
  const onDisk = (host: SimHost): Epoch | null => host.disk.peek()?.epochSeen ?? null
  const isDurable = (host: SimHost, epoch: Epoch): boolean => {
    const disk = onDisk(host)
    return disk !== null && compareEpochs(disk, epoch) >= 0
  }
  const inLife = new Map<Life, Epoch>()
  /** Under which epoch a group was told to stop on a machine. */
  const stopEpochs = new Map<string, Epoch>()
  /** Something was done that cannot be taken back: the epoch behind it must be on disk. */
  const act = (host: SimHost, epoch: Epoch, what: string): void => {
    verdict.check(
      'S2',
      isDurable(host, epoch),
      () => `${nameOf(host)} ${what} under ${show(epoch)}, which is not on its disk`,
    )
    const known = highest.get(host)
    if (known === undefined || compareEpochs(epoch, known) > 0) highest.set(host, epoch)
  }
  return {
    booted(host) {
      const read = host.life?.machine.state.epochSeen
      const known = highest.get(host)
      if (read === undefined || known === undefined) return
      if (host.disk.isTampered) highest.set(host, read)
      else
        verdict.check(
          'S2',
          compareEpochs(read, known) >= 0,
          () => `${nameOf(host)} acted under ${show(known)} and came back with ${show(read)}`,
        )
    },
    stepped(host, { input, before, after }) {
      if (input.kind !== 'message' || !('epoch' in input.message) || host.life === null) return
      const order = input.message
      if (!isObeyed(order, before, after)) return
      const known = inLife.get(host.life) ?? highest.get(host)
      verdict.check(
        'S2',
        known === undefined || compareEpochs(order.epoch, known) >= 0,
        () => `${nameOf(host)} obeyed ${order.kind} of ${show(order.epoch)} after ${show(known)}`,
      )
      inLife.set(host.life, order.epoch)
      if (order.kind === 'group-stop')
        stopEpochs.set(`${host.spec.index} ${order.group}`, order.epoch)
    },
    sent(from, _to, message) {
      if (message.kind === 'group-prepare' || message.kind === 'group-commit')
        act(from, message.epoch, `ordered ${message.kind}`)
    },
    launched({ host, life, load }) {
      const holding = life.machine.state.holdings.get(
        holdingKey(load.group as never, rankNumber(load)),
      )
      if (holding !== undefined) act(host, holding.epoch, 'started a rank')
    },
    signalled({ host, life, load }) {
      const epoch = stopEpochs.get(`${host.spec.index} ${load.group}`)
      const key = holdingKey(load.group as never, rankNumber(load))
      const isOrdered = life.machine.state.holdings.get(key)?.stop?.ordered === true
      if (life.isAlive && isOrdered && epoch !== undefined) act(host, epoch, 'stopped a rank')
    },
  }
}

function isObeyed(order: Order, before: MachineState, after: MachineState): boolean {
  if (before.holdings === after.holdings) return false
  if (order.kind === 'model-fetch') return false
  const group = order.kind === 'group-prepare' ? order.plan.group : order.group
  for (const holding of after.holdings.values()) {
    if (holding.plan.group !== group) continue
    const known = before.holdings.get(holdingKey(group, holding.rank))
    if (order.kind === 'group-prepare' && known === undefined) return true
    if (order.kind === 'group-commit' && known?.committed === null && holding.committed !== null)
      return true
    if (order.kind === 'group-stop' && known?.stop === null && holding.stop !== null) return true
  }
  return false
}

function show(epoch: Epoch | undefined): string {
  return epoch === undefined ? 'none' : `${epoch.counter}.${epoch.machine.slice(0, 6)}`
}
