// S2: no machine obeys an epoch below the highest it has obeyed, in this life or an earlier one, and none
// obeys or orders anything before the epoch is on its disk.
import type { GroupMessage } from '../../core/cluster/messages.ts'
import { type Epoch, compareEpochs } from '../../core/cluster/record.ts'
import { type MachineState, holdingKey } from '../../core/cluster/state.ts'
import type { SimHost } from '../host.ts'
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
          () => `${nameOf(host)} obeyed ${show(known)} and came back with ${show(read)}`,
        )
    },
    stepped(host, { input, before, after }) {
      if (input.kind !== 'message' || !('epoch' in input.message)) return
      const order = input.message
      if (!isObeyed(order, before, after)) return
      const known = highest.get(host)
      verdict.check(
        'S2',
        known === undefined || compareEpochs(order.epoch, known) >= 0,
        () => `${nameOf(host)} obeyed ${order.kind} of ${show(order.epoch)} after ${show(known)}`,
      )
      if (known === undefined || compareEpochs(order.epoch, known) > 0)
        highest.set(host, order.epoch)
    },
    sent(from, _to, message) {
      if (message.kind !== 'group-prepare' && message.kind !== 'group-commit') return
      verdict.check(
        'S2',
        isDurable(from, message.epoch),
        () =>
          `${nameOf(from)} ordered ${message.kind} under ${show(message.epoch)}, which is not on its disk`,
      )
    },
    launched(rank) {
      const key = holdingKey(rank.load.group as never, rankNumber(rank.load))
      const holding = rank.life.machine.state.holdings.get(key)
      if (holding === undefined) return
      verdict.check(
        'S2',
        isDurable(rank.host, holding.epoch),
        () =>
          `${nameOf(rank.host)} started a rank under ${show(holding.epoch)}, which is not on its disk`,
      )
    },
  }
}

function isObeyed(order: Order, before: MachineState, after: MachineState): boolean {
  if (before.holdings === after.holdings) return false
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
