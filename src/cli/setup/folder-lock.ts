// One set-up at a time: parallel starts wait for the first instead of doing its work again.
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UserError } from '../command.ts'

const pollMs = 200
/** A holder that died before it wrote its pid is noticed by the age of its folder. */
const staleMs = 10_000

export async function withFolderLock<T>(
  folder: string,
  { waitMsMax, onWait }: { waitMsMax: number; onWait: () => void },
  run: () => Promise<T>,
): Promise<T> {
  const deadline = performance.now() + waitMsMax
  let told = false
  while (!take(folder)) {
    if (performance.now() > deadline) {
      throw new UserError(
        `Another set-up has held ${folder} for too long; remove that folder if none runs`,
      )
    }
    if (!told) onWait()
    told = true
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
  try {
    return await run()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function take(folder: string): boolean {
  try {
    mkdirSync(folder)
  } catch (error) {
    if ((error as { code?: string }).code !== 'EEXIST') throw error
    if (isStale(folder)) rmSync(folder, { recursive: true, force: true })
    return false
  }
  writeFileSync(join(folder, 'pid'), String(process.pid))
  return true
}

function isStale(folder: string): boolean {
  try {
    const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'))
    process.kill(pid, 0)
    return false
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === 'ESRCH') return true
    if (code === 'EPERM') return false
    try {
      return Date.now() - statSync(folder).mtimeMs > staleMs
    } catch {
      return false
    }
  }
}
