// A folder of captures per machine: one text file per command, named by its words, and machine.json for
// what plain files cannot say. People can make one by hand: "ibv_devices > studio/ibv_devices.txt".
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Platform } from '../../../core/machine-facts/machine.ts'
import type { CommandOutcome } from '../../../ports/machine-access.ts'
import { type MachineDescription, machineDescription } from '../../../wire/captures.ts'
import { type RecordedCommand, type Recording, captureName } from './recording.ts'

export interface CapturedMachine {
  readonly name: string
  readonly platform: Platform
  readonly description: MachineDescription
  readonly recording: Recording
}

export class CaptureFolderError extends Error {
  override readonly name = 'CaptureFolderError'
}

const descriptionFile = 'machine.json'

/** One machine per subfolder, in the order of their names. */
export async function readCaptureFolders(folder: string): Promise<readonly CapturedMachine[]> {
  let names: readonly string[]
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const why =
      code === 'ENOENT'
        ? 'there is no such folder'
        : code === 'ENOTDIR'
          ? 'it is no folder'
          : message
    throw new CaptureFolderError(`Cannot read captures from "${folder}": ${why}`, { cause: error })
  }
  if (names.length === 0)
    throw new CaptureFolderError(
      `"${folder}" holds no captures: put the outputs of each machine into a subfolder of its own`,
    )
  return Promise.all(names.toSorted().map((name) => readCaptureFolder(join(folder, name))))
}

export async function readCaptureFolder(folder: string): Promise<CapturedMachine> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.txt'))
  const texts = new Map<string, string>()
  for (const file of files)
    texts.set(file.slice(0, -'.txt'.length), await readFile(join(folder, file), 'utf8'))
  const description = await readDescription(folder, texts)
  return {
    name: description.name ?? basename(folder),
    platform: description.platform,
    description,
    recording: recordingOf(description, texts),
  }
}

async function readDescription(
  folder: string,
  texts: ReadonlyMap<string, string>,
): Promise<MachineDescription> {
  const path = join(folder, descriptionFile)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch {
    return machineDescription.parse({ platform: platformOf(folder, texts) })
  }
  const parsed = machineDescription.safeParse(parseJsonOrNull(text))
  if (!parsed.success)
    throw new CaptureFolderError(
      `Cannot read "${path}": ${parsed.error.issues[0]?.path.join('.') ?? ''} ${parsed.error.issues[0]?.message ?? 'it is not a description of captures'}`,
    )
  return parsed.data
}

function parseJsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const macOnly = /^(system_profiler|sw_vers|networksetup|rdma_ctl|vm_stat|pmset)(_|$)/

function platformOf(folder: string, texts: ReadonlyMap<string, string>): Platform {
  if ([...texts.keys()].some((name) => macOnly.test(name))) return 'macos'
  throw new CaptureFolderError(
    `Cannot tell which system the captures in "${folder}" come from: add ${descriptionFile} with {"platform": "macos"} or "linux"`,
  )
}

function recordingOf(
  description: MachineDescription,
  texts: ReadonlyMap<string, string>,
): Recording {
  const commands = new Map<string, RecordedCommand>()
  for (const name of new Set([...texts.keys(), ...Object.keys(description.outcomes)])) {
    const text = texts.get(name) ?? ''
    // Editors drop the last newline; tools never do, and the parsers count on it.
    const stdout = text === '' || text.endsWith('\n') ? text : `${text}\n`
    commands.set(name, { argv: [name], outcome: outcomeOf(description.outcomes[name], stdout) })
  }
  return {
    commands,
    files: new Map(Object.entries(description.files)),
    folders: new Map(Object.entries(description.folders)),
    connections: new Map(Object.entries(description.connections)),
    addresses: description.addresses,
  }
}

function outcomeOf(
  described: MachineDescription['outcomes'][string] | undefined,
  stdout: string,
): CommandOutcome {
  if (described === undefined) return { kind: 'exited', exitCode: 0, stdout, stderr: '' }
  return described.kind === 'exited' ? { ...described, stdout } : described
}

export async function writeCaptureFolder(
  folder: string,
  machine: Pick<CapturedMachine, 'description' | 'recording'>,
): Promise<void> {
  await mkdir(folder, { recursive: true })
  const outcomes: Record<string, MachineDescription['outcomes'][string]> = {}
  for (const { argv, outcome } of machine.recording.commands.values()) {
    const name = captureName(argv)
    if (outcome.kind === 'not-captured') continue
    if (outcome.kind === 'exited') {
      const { stdout, ...rest } = outcome
      if (stdout !== '') await writeFile(join(folder, `${name}.txt`), stdout)
      if (rest.exitCode !== 0 || rest.stderr !== '' || stdout === '') outcomes[name] = rest
    } else outcomes[name] = outcome
  }
  const files = [...machine.recording.files].flatMap(([path, outcome]) =>
    outcome.kind === 'not-captured' ? [] : [[path, outcome] as const],
  )
  const connections = [...machine.recording.connections].flatMap(([name, result]) =>
    result.kind === 'not-captured' ? [] : [[name, result] as const],
  )
  const description: MachineDescription = {
    ...machine.description,
    outcomes,
    files: Object.fromEntries(files),
    folders: Object.fromEntries([...machine.recording.folders].map(([k, v]) => [k, v && [...v]])),
    connections: Object.fromEntries(connections),
    addresses: [...machine.recording.addresses],
  }
  await writeFile(join(folder, descriptionFile), `${JSON.stringify(description, null, 2)}\n`)
}
