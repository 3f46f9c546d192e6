// bushel connect: the exact settings with which a client finds Bushel, shown or written.
import { constants } from 'node:fs'
import { copyFile, mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { z } from 'zod'
import { writeFileAtomically } from '../../files/atomic-file.ts'
import { type CliContext, UserError, exitCodes } from '../command.ts'
import { applyEdit } from '../connect/apply-edit.ts'
import { type Client, type Edit, type Target, clients } from '../connect/clients.ts'
import { daemonUrl, findDaemon } from '../daemon-client.ts'
import { homeDir, loadSettings } from '../settings.ts'

interface ConnectFlags {
  readonly model?: string
  readonly write?: boolean
  readonly yes?: boolean
  readonly json?: boolean
}

const names = Object.keys(clients).join(', ')

export function register(command: Command, context: CliContext): void {
  command
    .argument('<client>', names)
    .option('--model <model>', 'the model it asks for (default: the first one served)')
    .option('--write', "write its settings, after asking; the file's old self is kept beside it")
    .option('--yes', 'write without asking')
    .action(async (name: string, flags: ConnectFlags) => {
      const client = clients[name]
      if (client === undefined)
        throw new UserError(`There is no client "${name}" here; there are: ${names}`, {
          exitCode: exitCodes.usage,
        })
      const target = await targetFor(context, flags.model)
      const edit = client.edit?.(target) ?? null
      if (flags.write !== true) {
        const file = edit === null ? null : pathOf(context, edit)
        if (flags.json === true)
          context.out.json({ client: name, ...target, file, settings: client.show(target) })
        else context.out.result(client.show(target))
        if (edit !== null) context.out.note(`(--write does this in ${file ?? ''})`)
        return
      }
      if (edit === null)
        throw new UserError(
          `${client.title} keeps its settings where only it can write; run "bushel connect ${name}" and follow it`,
        )
      await write(context, { client, edit, isAgreed: flags.yes === true })
    })
}

const modelList = z.object({ data: z.array(z.looseObject({ id: z.string() })) })

async function targetFor(context: CliContext, wanted: string | undefined): Promise<Target> {
  const url = daemonUrl(context.env)
  const port = Number(new URL(url).port)
  const key = loadSettings({}, context.env).apiKey
  const daemon = findDaemon(homeDir(context.env))
  if (wanted !== undefined || daemon === null)
    return { url, port, key, model: wanted ?? 'SmolLM2-135M-Instruct' }
  const { data } = modelList.parse(await daemon.get('/v1/models'))
  const model = data[0]?.id
  if (model === undefined)
    throw new UserError(
      'No model is there yet; fetch one with "bushel pull ORG/NAME", or name one with --model',
    )
  return { url, port, key, model }
}

function pathOf(context: CliContext, edit: Edit): string {
  const home = context.env['HOME']
  if (home === undefined || home === '')
    throw new UserError('HOME is not set, so there is no place to write to')
  return join(home, ...edit.path)
}

async function write(
  context: CliContext,
  { client, edit, isAgreed }: { client: Client; edit: Edit; isAgreed: boolean },
): Promise<void> {
  const path = pathOf(context, edit)
  const before = await readFile(path, 'utf8').catch(() => null)
  const outcome = applyEdit(before, edit)
  if (outcome.kind === 'refused')
    throw new UserError(`${path} is left as it is: ${outcome.reason}; put the settings in by hand`)
  if (outcome.kind === 'unchanged') {
    context.out.result(`${path} already says so.`)
    return
  }
  context.out.note(`${path} would become:\n\n${outcome.text}`)
  if (!isAgreed && !(await agree(`Write it?`)))
    throw new UserError('Nothing was written; agree with y, or pass --yes')
  const backup = before === null ? null : `${path}.before-bushel`
  await mkdir(dirname(path), { recursive: true })
  // A second writing keeps the first backup: it alone is from before us.
  if (backup !== null) await copyFile(path, backup, constants.COPYFILE_EXCL).catch(() => undefined)
  await writeFileAtomically(path, outcome.text, { mode: 0o600 })
  const kept = backup === null ? '' : ` What it was before is in ${backup}.`
  context.out.result(`${client.title} now asks Bushel: ${path} is written.${kept}`)
}

/** Without a person at a terminal nobody can agree, and nothing is done. */
async function agree(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) return false
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test((await lines.question(`${question} [y/N] `)).trim())
  } finally {
    lines.close()
  }
}
