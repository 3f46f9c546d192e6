// Turns a bundle that an owner sent into a folder of captures and rows of measurements.
import { access as canAccess, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeCaptureFolder } from '../../adapters/probers/access/capture-folder.ts'
import { recordingOfBundle } from '../../adapters/selftest/bundle-recording.ts'
import {
  type MeasuredRow,
  type SelftestBundle,
  selftestBundle,
} from '../../wire/selftest-bundle.ts'
import { UserError } from '../command.ts'

/** A bundle of ten machines with every listing stays far below this. */
const bundleBytesMax = 32 * 1024 * 1024

export interface ImportReport {
  readonly folder: string
  readonly machines: readonly string[]
  readonly measured: readonly MeasuredRow[]
}

export async function readBundle(path: string): Promise<SelftestBundle> {
  let text: string
  try {
    if ((await stat(path)).size > bundleBytesMax)
      throw new UserError(`"${path}" is too large to be a self-test`)
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof UserError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    const why = code === 'ENOENT' ? 'there is no such file' : message
    throw new UserError(`Cannot read "${path}": ${why}`, { cause: error })
  }
  const parsed = selftestBundle.safeParse(jsonOrNull(text))
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new UserError(
    `"${path}" is not a file of "bushel selftest": ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`,
  )
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

export async function importBundle(
  bundle: SelftestBundle,
  target: { readonly into: string; readonly name: string },
): Promise<ImportReport> {
  if (!/^[a-z0-9][a-z0-9-]{0,63}$/.test(target.name))
    throw new UserError(
      `"${target.name}" is no name for a folder: take lower-case letters, digits and "-"`,
    )
  const folder = join(target.into, target.name)
  if (await exists(folder)) throw new UserError(`"${folder}" exists already; choose another --name`)
  await mkdir(folder, { recursive: true })
  for (const machine of bundle.machines)
    await writeCaptureFolder(join(folder, machine.label), {
      recording: recordingOfBundle(machine),
      description: {
        platform: machine.platform,
        name: machine.label,
        observedAtMs: machine.observedAtMs,
        ...(machine.self === null ? {} : { self: machine.self }),
        provenance: {
          class: 'real',
          source: 'sent by an owner with "bushel selftest"',
          note: `Bushel ${bundle.bushel}, ${bundle.day}; names, serials and addresses replaced`,
        },
        outcomes: {},
        files: {},
        folders: {},
        connections: {},
        addresses: [],
      },
    })
  const measured = bundle.steps.flatMap(({ outcome }) =>
    outcome.kind === 'ran' ? outcome.measured : [],
  )
  const rows = measured.map((row) =>
    JSON.stringify({ ...row, day: bundle.day, bushel: bundle.bushel }),
  )
  // Not inside the folder of machines: every subfolder there is a machine.
  if (rows.length > 0) await writeFile(join(folder, 'measured.jsonl'), `${rows.join('\n')}\n`)
  return { folder, machines: bundle.machines.map((one) => one.label), measured }
}

async function exists(path: string): Promise<boolean> {
  try {
    await canAccess(path)
    return true
  } catch {
    return false
  }
}
