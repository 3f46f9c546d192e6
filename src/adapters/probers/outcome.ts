// From what a command did to what is known: the one place where a missing tool, a hang, a request for
// a password and silence are told apart, so that every prober reports them in the same words.
import { assertNever } from '../../core/assert.ts'
import { type Fact, known, unknown } from '../../core/machine-facts/fact.ts'
import type { CommandOutcome, ReadOutcome } from '../../ports/machine-access.ts'

const adminWords =
  /password is required|a terminal is required|superuser|must be (?:run as )?root|permission denied|operation not permitted|not authorized|need to be root/i

/** The whole output of a command that did what it should. */
export function textOf(command: string, outcome: CommandOutcome): Fact<string> {
  switch (outcome.kind) {
    case 'missing':
      return unknown('tool-missing', `${command} is not on this machine`)
    case 'timed-out':
      return unknown('timed-out', `${command} did not answer within ${outcome.afterMs / 1000} s`)
    case 'not-captured':
      return unknown('not-captured', `the captures hold no output of ${command}`)
    case 'exited':
      return textOfExited(command, outcome)
    default:
      return assertNever(outcome)
  }
}

function textOfExited(
  command: string,
  outcome: Extract<CommandOutcome, { kind: 'exited' }>,
): Fact<string> {
  if (outcome.exitCode !== 0) {
    const said = firstLine(outcome.stderr) ?? firstLine(outcome.stdout) ?? 'it said nothing'
    return adminWords.test(`${outcome.stderr}\n${outcome.stdout}`)
      ? unknown('needs-admin', `${command} needs administrator rights (${said})`)
      : unknown('tool-failed', `${command} ended with code ${outcome.exitCode} (${said})`)
  }
  if (outcome.stdout.trim() === '') return unknown('empty', `${command} printed nothing`)
  return known(outcome.stdout)
}

/** For tools that print what they can and then complain about the rest, such as sysctl. */
export function partialTextOf(command: string, outcome: CommandOutcome): Fact<string> {
  if (outcome.kind === 'exited' && outcome.exitCode !== 0 && outcome.stdout.trim() !== '')
    return known(outcome.stdout)
  return textOf(command, outcome)
}

export function textOfFile(path: string, outcome: ReadOutcome): Fact<string> {
  switch (outcome.kind) {
    case 'text':
      return known(outcome.text)
    case 'missing':
      return unknown('not-printed', `${path} does not exist`)
    case 'refused':
      return outcome.code === 'EACCES' || outcome.code === 'EPERM'
        ? unknown('needs-admin', `${path} may not be read (${outcome.code})`)
        : unknown('not-printed', `${path} has no value (${outcome.code})`)
    case 'not-captured':
      return unknown('not-captured', `the captures do not hold ${path}`)
    default:
      return assertNever(outcome)
  }
}

function firstLine(text: string): string | undefined {
  const line = text.split('\n').find((one) => one.trim() !== '')
  return line?.trim().slice(0, 160)
}
