// What every command is given and how it ends. A command module registers itself on commander and
// does its work through the context, so that tests can run it without a process.
import type { Command } from 'commander'

export interface CliContext {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The folder of this program: the checkout, or the installed package. */
  readonly programDir: string
  readonly out: Output
}

export interface Output {
  /** What was asked for: human text or, with --json, the one document. */
  result(text: string): void
  json(value: unknown): void
  /** Everything else: progress, warnings, hints. */
  note(text: string): void
  readonly isTty: boolean
}

export interface CommandModule {
  register(command: Command, context: CliContext): void
}

/** Exit codes that scripts may rely on. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  daemonMissing: 3,
  interrupted: 130,
} as const

/** A failure that the person can act on: one sentence of cause, one of what to do next. */
export class UserError extends Error {
  override readonly name = 'UserError'
  readonly exitCode: number
  constructor(message: string, options: { exitCode?: number; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.exitCode = options.exitCode ?? exitCodes.failed
  }
}
