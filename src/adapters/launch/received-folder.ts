// The folder of a launch on the machine that runs a rank: files are written as they come and the whole is
// taken away afterwards.
import { appendFile, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { launchLimits } from '../../core/launch/limits.ts'
import { formatBytes } from '../../core/units.ts'
import type { LaunchFilePart } from '../../wire/launch-messages.ts'

export class ReceivedFolder {
  /** Everything of the launch; the script's own files are one level below. */
  readonly root: string
  readonly #paths = new Set<string>()
  #bytes = 0

  constructor(root: string) {
    this.root = root
  }

  get files(): string {
    return join(this.root, 'files')
  }

  async take(part: LaunchFilePart): Promise<void> {
    const data = Buffer.from(part.data, 'base64')
    this.#bytes += data.length
    if (this.#bytes > launchLimits.folderBytesMax)
      throw new Error(`the folder is larger than ${formatBytes(launchLimits.folderBytesMax)}`)
    const path = join(this.files, part.path)
    if (this.#paths.has(part.path)) {
      await appendFile(path, data)
      return
    }
    this.#paths.add(part.path)
    if (this.#paths.size > launchLimits.filesMax)
      throw new Error(`the folder holds more than ${launchLimits.filesMax} files`)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFile(path, data, { flag: 'wx', mode: part.executable ? 0o700 : 0o600 })
  }

  /** A file that only the rank's environment points at. */
  async addWorldFile(name: string, content: string): Promise<string> {
    const path = join(this.root, `${name}.json`)
    await mkdir(this.root, { recursive: true, mode: 0o700 })
    await writeFile(path, content, { mode: 0o600 })
    return path
  }

  remove(): Promise<void> {
    return rm(this.root, { recursive: true, force: true, maxRetries: 3 })
  }
}
