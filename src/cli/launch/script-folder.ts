// The folder of a script that is to be launched: what is in it, and whether it may travel.
import { createReadStream } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { launchLimits } from '../../core/launch/limits.ts'
import { formatBytes } from '../../core/units.ts'
import type { LaunchFilePart } from '../../wire/launch-messages.ts'
import { UserError, exitCodes } from '../command.ts'

export interface ScriptFolder {
  readonly root: string
  /** Relative to the root. */
  readonly script: string
  readonly files: readonly { readonly path: string; readonly executable: boolean }[]
  readonly bytes: number
}

/** Made by tools, made again by tools, or hidden on purpose: settings and secrets stay where they are. */
const isLeftOut = (name: string): boolean =>
  name.startsWith('.') || name === '__pycache__' || name === 'node_modules'

export async function readScriptFolder(script: string): Promise<ScriptFolder> {
  const path = resolve(script)
  const found = await lstat(path).catch(() => null)
  const usage = { exitCode: exitCodes.usage }
  if (found === null) throw new UserError(`There is no script "${script}"`, usage)
  if (found.isSymbolicLink())
    throw new UserError(`"${script}" is a symbolic link; name the script itself`, usage)
  if (!found.isFile()) throw new UserError(`"${script}" is no file; name a Python script`, usage)
  const root = dirname(path)
  const files: { path: string; executable: boolean }[] = []
  let bytes = 0
  const walk = async (folder: string): Promise<void> => {
    const entries = await readdir(folder, { withFileTypes: true })
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const full = join(folder, entry.name)
      const isScript = full === path
      if (isLeftOut(entry.name) && !isScript) continue
      if (entry.isDirectory()) {
        await walk(full)
        continue
      }
      if (!entry.isFile()) throw new UserError(refusal(root, full, entry.isSymbolicLink()))
      const { size, mode } = await lstat(full)
      bytes += size
      files.push({ path: relative(root, full), executable: (mode & 0o111) !== 0 })
      if (bytes > launchLimits.folderBytesMax || files.length > launchLimits.filesMax)
        throw new UserError(tooLarge(root))
    }
  }
  await walk(root)
  return { root, script: basename(path), files, bytes }
}

function refusal(root: string, full: string, isLink: boolean): string {
  const what = isLink ? 'is a symbolic link' : 'is neither a file nor a folder'
  return `Cannot copy ${root} to the machines: ${relative(root, full)} ${what}; remove it, or put the script in a folder of its own`
}

function tooLarge(root: string): string {
  const { folderBytesMax, filesMax } = launchLimits
  return `Cannot copy ${root} to the machines: it holds more than ${formatBytes(folderBytesMax)} or ${filesMax} files; put the script in a folder of its own, and large data on the machines`
}

/** The files in pieces, as they travel. */
export async function* partsOf(folder: ScriptFolder): AsyncIterable<LaunchFilePart> {
  for (const { path, executable } of folder.files) {
    const part = (data: Buffer): LaunchFilePart => ({
      kind: 'file',
      path,
      executable,
      data: data.toString('base64'),
    })
    let isEmpty = true
    const options = { highWaterMark: launchLimits.partBytesMax }
    for await (const chunk of createReadStream(join(folder.root, path), options)) {
      isEmpty = false
      yield part(chunk as Buffer)
    }
    if (isEmpty) yield part(Buffer.alloc(0))
  }
}
