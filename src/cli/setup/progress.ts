// Phases and progress on stderr: a moving line on a terminal, plain lines elsewhere.
import type { Output } from '../command.ts'

export interface Progress {
  /** Starts a phase; ends the one before it. */
  phase(title: string): void
  /** How far the phase is, in words ("34 of 112 MB"). */
  update(detail: string): void
  done(): void
}

const plainEveryMs = 5000

export function createProgress(out: Output, write: (text: string) => void): Progress {
  let title = ''
  let startedMs = 0
  let lastPlainMs = 0
  const seconds = (): string => `${((performance.now() - startedMs) / 1000).toFixed(1)} s`
  const finish = (): void => {
    if (title === '') return
    if (out.isTty) write(`\r\u001b[2K`)
    out.note(`  ${title} (${seconds()})`)
    title = ''
  }
  return {
    phase(next) {
      finish()
      title = next
      startedMs = performance.now()
      lastPlainMs = startedMs
      if (out.isTty) write(`  ${title} …`)
      else out.note(`  ${title} …`)
    },
    update(detail) {
      if (out.isTty) {
        write(`\r\u001b[2K  ${title} … ${detail}`.slice(0, 120))
      } else if (performance.now() - lastPlainMs > plainEveryMs) {
        lastPlainMs = performance.now()
        out.note(`    ${detail}`)
      }
    },
    done: finish,
  }
}
