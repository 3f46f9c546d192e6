// A small program of the self-test, launched over the cluster at hand: what its ranks printed, when, and how it
// ended.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LaunchRequest } from '../../wire/launch-messages.ts'
import type { DaemonClient } from '../daemon-client.ts'
import { launchOn } from '../launch/launch-client.ts'
import { readScriptFolder } from '../launch/script-folder.ts'

export interface LaunchedOutcome {
  /** Why it did not run; null when it did. */
  readonly refusal: string | null
  readonly code: number
  readonly cause: string
  readonly backend: string
  readonly output: string
  /** From the first output that holds the mark to the end of all ranks. */
  readonly afterMarkMs: number | null
}

export async function runLaunched(
  daemon: DaemonClient,
  about: { script: string; backend: LaunchRequest['backend']; mark?: string },
): Promise<LaunchedOutcome> {
  const folder = await mkdtemp(join(tmpdir(), 'bushel-selftest-'))
  try {
    await writeFile(join(folder, 'program.py'), about.script)
    const files = await readScriptFolder(join(folder, 'program.py'))
    const request: LaunchRequest = {
      kind: 'launch',
      machines: [],
      backend: about.backend,
      script: files.script,
      args: [],
      env: {},
      files: files.files.length,
      bytes: files.bytes,
    }
    // By rank: pieces of several come in any order, and lines must stay whole.
    const said = new Map<number, string>()
    const all = (): string => [...said.values()].join('\n')
    let backend = ''
    let markMs: number | null = null
    for await (const message of launchOn(daemon, request, files)) {
      if (message.kind === 'world') backend = message.backend
      if (message.kind === 'output') {
        const text = Buffer.from(message.data, 'base64').toString()
        said.set(message.rank, (said.get(message.rank) ?? '') + text)
        if (about.mark !== undefined && all().includes(about.mark)) markMs ??= performance.now()
      }
      const end = { backend, output: all(), afterMarkMs: null }
      if (message.kind === 'refused')
        return { ...end, refusal: message.reason, code: 1, cause: message.reason }
      if (message.kind === 'ended') {
        const afterMarkMs = markMs === null ? null : performance.now() - markMs
        return { ...end, refusal: null, code: message.code, cause: message.cause, afterMarkMs }
      }
    }
    const cause = 'the daemon ended on the way'
    return { refusal: null, code: 1, cause, backend, output: all(), afterMarkMs: null }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
