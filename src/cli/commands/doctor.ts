import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { DoctorJournalError, createDoctorJournal } from '../../adapters/doctor-journal.ts'
import { createRunCommand } from '../../adapters/probers/access/real-access.ts'
import { renderDiagnosis } from '../../core/doctor/render.ts'
import { type Diagnosis, diagnose } from '../../core/doctor/run-doctor.ts'
import { clusterView } from '../../wire/cluster-view.ts'
import { type CliContext, UserError, exitCodes } from '../command.ts'
import { findDaemon } from '../daemon-client.ts'
import { type CollectedFacts, type FactsOptions, collectFacts } from '../machines/facts-source.ts'
import {
  type FixReport,
  type FixerComponents,
  applyFixes,
  localFixes,
  undoChanges,
} from '../machines/fixer.ts'
import { slowLines } from '../slow-machines.ts'
import { homeDir } from '../settings.ts'

interface Options extends FactsOptions {
  readonly all?: boolean
  readonly fix?: boolean
  readonly undo?: boolean
  readonly yes?: boolean
  readonly json?: boolean
}

export function register(command: Command, context: CliContext): void {
  command
    .option('--from <folder>', 'read captures: one subfolder per machine')
    .option('--machines <names>', 'only these machines, separated by commas')
    .option('--all', 'show also what is right')
    .option('--fix', 'offer to set right what can be, one question each')
    .option('--undo', 'take back what --fix has changed')
    .option('--yes', 'agree to every offer of --fix')
    .action(async (options: Options) => {
      const fixer = createFixer(context, options)
      if (options.undo === true) {
        reportUndone(context, options, await withJournal(() => undoChanges(fixer)))
        return
      }
      const facts = await collectFacts(context, options)
      const diagnosis = diagnose(facts)
      if (options.fix === true) await fix({ context, options, fixer, facts, diagnosis })
      else show(context, options, diagnosis)
      if (options.from === undefined) await tellSlow(context)
      if (diagnosis.counts.fail > 0) process.exitCode = exitCodes.failed
    })
}

/** The daemon keeps the books; without one there is nothing to tell. */
async function tellSlow(context: CliContext): Promise<void> {
  const daemon = findDaemon(homeDir(context.env))
  if (daemon === null) return
  const { slow } = clusterView.parse(await daemon.get('/cluster/view'))
  for (const line of slowLines(slow)) context.out.note(line)
}

function show(context: CliContext, options: Options, diagnosis: Diagnosis): void {
  if (options.json === true) context.out.json(diagnosis)
  else context.out.result(renderDiagnosis(diagnosis, { verbose: options.all === true }))
}

async function fix(run: {
  readonly context: CliContext
  readonly options: Options
  readonly fixer: FixerComponents
  readonly facts: CollectedFacts
  readonly diagnosis: Diagnosis
}): Promise<void> {
  const { context, options, facts, diagnosis } = run
  if (facts.local === null)
    throw new UserError('Captures cannot be fixed: run "bushel doctor --fix" on the machine itself')
  const offers = localFixes(diagnosis.findings, facts.local)
  if (options.json !== true) show(context, options, diagnosis)
  if (offers.length === 0)
    context.out.note('There is nothing here that Bushel could set right by itself.')
  else if (options.yes !== true && !process.stdin.isTTY)
    context.out.note('There is no terminal to ask at, so nothing is done; --yes agrees to all.')
  const report = await withJournal(() => applyFixes(run.fixer, offers))
  const canBeUndone = offers.some(
    ({ fix }) => fix.undo.length > 0 && report.applied.includes(fix.summary),
  )
  reportChanges(context, options, { report, canBeUndone })
}

/** What was changed is on record first; without the record nothing is touched. */
async function withJournal(change: () => Promise<FixReport>): Promise<FixReport> {
  try {
    return await change()
  } catch (error) {
    if (error instanceof DoctorJournalError) throw new UserError(error.message, { cause: error })
    throw error
  }
}

function reportChanges(
  context: CliContext,
  options: Options,
  { report, canBeUndone }: { report: FixReport; canBeUndone: boolean },
): void {
  if (options.json === true) context.out.json(report)
  for (const summary of report.applied) context.out.note(`Done: ${summary}`)
  for (const { summary, why } of report.failed) context.out.note(`Not done: ${summary}: ${why}`)
  if (canBeUndone) context.out.note('Take it back with "bushel doctor --undo".')
  if (report.failed.length > 0) process.exitCode = exitCodes.failed
}

function reportUndone(context: CliContext, options: Options, report: FixReport): void {
  if (options.json === true) context.out.json(report)
  const { applied, failed } = report
  if (applied.length + failed.length === 0) context.out.note('There is nothing to take back.')
  for (const summary of applied) context.out.note(`Taken back: ${summary}`)
  for (const { summary, why } of failed) context.out.note(`Not taken back: ${summary}: ${why}`)
  if (failed.length > 0) process.exitCode = exitCodes.failed
}

function createFixer(context: CliContext, options: Options): FixerComponents {
  return {
    runCommand: createRunCommand(context.env),
    journal: createDoctorJournal(join(homeDir(context.env), 'doctor', 'changes.json')),
    nowMs: () => Date.now(),
    isRoot: process.getuid?.() === 0,
    say: (text) => context.out.note(text),
    confirm: async (question) => options.yes === true || ask(question),
  }
}

/** Without a person at a terminal nobody can agree, and nothing is done. */
async function ask(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) return false
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test((await lines.question(`${question} [y/N] `)).trim())
  } finally {
    lines.close()
  }
}
