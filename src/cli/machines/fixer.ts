// Carries out what the doctor offers, one agreed change at a time, and takes it all back again. Nothing is
// installed and nothing keeps running: each fix is a few commands with their opposite written down first.
import type { DoctorJournal } from '../../adapters/doctor-journal.ts'
import { textOf } from '../../adapters/probers/outcome.ts'
import type { Finding, Fix, FixCommand } from '../../core/doctor/finding.ts'
import type { RunCommand } from '../../ports/machine-access.ts'
import type { DoctorChange } from '../../wire/doctor-changes.ts'

export interface FixerComponents {
  readonly runCommand: RunCommand
  readonly journal: DoctorJournal
  readonly nowMs: () => number
  readonly isRoot: boolean
  readonly say: (text: string) => void
  readonly confirm: (question: string) => Promise<boolean>
}

export interface FixReport {
  readonly applied: readonly string[]
  readonly declined: readonly string[]
  readonly failed: readonly { readonly summary: string; readonly why: string }[]
}

/** Long enough for networksetup on a busy Mac. */
const fixTimeoutMs = 20_000

export function localFixes(
  findings: readonly Finding[],
  machine: string,
): readonly { readonly finding: Finding; readonly fix: Fix }[] {
  return findings.flatMap((finding) =>
    finding.fix !== null && finding.fix.machine === machine ? [{ finding, fix: finding.fix }] : [],
  )
}

export async function applyFixes(
  components: FixerComponents,
  offers: readonly { readonly finding: Finding; readonly fix: Fix }[],
): Promise<FixReport> {
  const applied: string[] = []
  const declined: string[] = []
  const failed: { summary: string; why: string }[] = []
  for (const { finding, fix } of offers) {
    components.say(describe(finding, fix))
    if (!(await components.confirm('Do this?'))) {
      declined.push(fix.summary)
      continue
    }
    const why = await applyOne(components, finding, fix)
    if (why === null) applied.push(fix.summary)
    else failed.push({ summary: fix.summary, why })
  }
  return { applied, declined, failed }
}

function describe(finding: Finding, fix: Fix): string {
  const commandLine = (command: FixCommand): string =>
    `    ${command.admin ? 'sudo ' : ''}${command.argv.join(' ')}`
  return [
    `Check ${finding.number}: ${finding.evidence}`,
    `  would ${fix.summary}:`,
    ...fix.commands.map(commandLine),
    ...(fix.undo.length > 0 ? ['  taken back by:', ...fix.undo.map(commandLine)] : []),
    `  lasts: ${fix.lasting}`,
  ].join('\n')
}

/** Null when it worked; otherwise the reason, with everything already done taken back. */
async function applyOne(
  components: FixerComponents,
  finding: Finding,
  fix: Fix,
): Promise<string | null> {
  const atMs = components.nowMs()
  const change: DoctorChange = {
    id: `${atMs}-${finding.check}-${fix.machine}-${fix.commands[0]?.argv.join(' ') ?? ''}`,
    atMs,
    check: finding.check,
    summary: fix.summary,
    commands: fix.commands.map(copy),
    undo: fix.undo.map(copy),
    lasting: fix.lasting,
    state: 'begun',
  }
  await components.journal.put(change)
  for (const [index, command] of fix.commands.entries()) {
    const why = await run(components, command)
    if (why === null) continue
    const undone = index === 0 || (await runAll(components, fix.undo)) === null
    await components.journal.put({ ...change, state: undone ? 'failed' : 'begun' })
    return why
  }
  await components.journal.put({ ...change, state: 'done' })
  return null
}

const copy = (command: FixCommand): { argv: string[]; admin: boolean } => ({
  argv: [...command.argv],
  admin: command.admin,
})

async function runAll(
  components: FixerComponents,
  commands: readonly FixCommand[],
): Promise<string | null> {
  for (const command of commands) {
    const why = await run(components, command)
    if (why !== null) return why
  }
  return null
}

async function run(components: FixerComponents, command: FixCommand): Promise<string | null> {
  // -n: sudo must not ask behind our back; a person without a standing permission is told what to do.
  const argv =
    command.admin && !components.isRoot ? ['sudo', '-n', ...command.argv] : [...command.argv]
  const outcome = await components.runCommand(argv, { timeoutMs: fixTimeoutMs })
  if (outcome.kind === 'exited' && outcome.exitCode === 0) return null
  const text = textOf(command.argv[0] ?? '', outcome)
  if (text.known) return null
  return text.why.kind === 'needs-admin'
    ? `${text.why.detail}; run "sudo bushel doctor --fix"`
    : text.why.detail
}

/** Takes back all changes that are still in force, latest first. */
export async function undoChanges(components: FixerComponents): Promise<FixReport> {
  const open = (await components.journal.list()).filter(
    (change) => (change.state === 'begun' || change.state === 'done') && change.undo.length > 0,
  )
  const applied: string[] = []
  const failed: { summary: string; why: string }[] = []
  for (const change of open.toReversed()) {
    const why = await runAll(components, change.undo)
    if (why === null) {
      await components.journal.put({ ...change, state: 'undone' })
      applied.push(change.summary)
    } else failed.push({ summary: change.summary, why })
  }
  return { applied, declined: [], failed }
}
