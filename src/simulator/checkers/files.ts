// S13: what is read as whole was written whole: a journal that a daemon starts from is exactly one that was
// saved, never a piece of one; and ranks are ready only on files that are whole (see groups.ts).
import { type Checker, type Scene, nameOf } from './checker.ts'

export function fileChecker({ world }: Scene): Checker {
  return {
    booted(host) {
      const text = host.disk.readable
      if (text === null) return
      world.verdict.check(
        'S13',
        host.disk.written.has(text.trim()),
        () => `${nameOf(host)} started from a journal that was never written`,
      )
    },
  }
}
