// S1: what a machine has promised, and what its ranks may take, never exceeds what it lends.
import { reservedBytes } from '../../core/cluster/record.ts'
import { type Checker, type Scene, nameOf } from './checker.ts'

export function memoryChecker({ world }: Scene): Checker {
  const { verdict, farm } = world
  return {
    stepped(host, { before, after }) {
      if (before.holdings === after.holdings) return
      const bytes = reservedBytes([...after.holdings.values()])
      verdict.check(
        'S1',
        bytes <= host.spec.memoryLendBytes,
        () => `${nameOf(host)} reserved ${bytes} of ${host.spec.memoryLendBytes} bytes`,
      )
    },
    launched({ host, life }) {
      // Ranks of an earlier life are on their way out; S9 watches how long that takes.
      const own = farm.livingOn(host).filter((rank) => rank.life === life)
      const bytes = own.reduce((sum, rank) => sum + rank.load.limits.memoryBytesMax, 0)
      verdict.check(
        'S1',
        bytes <= host.spec.memoryLendBytes,
        () => `ranks on ${nameOf(host)} may take ${bytes} of ${host.spec.memoryLendBytes} bytes`,
      )
    },
  }
}
