// The command line's side of a launch: brings the folder, shows the output, forwards input and signals.
import { LineSplitter } from '../../adapters/line-splitter.ts'
import { launchLimits } from '../../core/launch/limits.ts'
import {
  type LaunchInput,
  type LaunchRequest,
  type ToLaunchClient,
  toLaunchClient,
} from '../../wire/launch-messages.ts'
import { UserError } from '../command.ts'
import type { DaemonClient } from '../daemon-client.ts'
import { type ScriptFolder, partsOf } from './script-folder.ts'

/** What came back, message by message; ends with "refused" or "ended", or throws. */
export async function* launchOn(
  daemon: DaemonClient,
  request: LaunchRequest,
  folder: ScriptFolder,
): AsyncIterable<ToLaunchClient> {
  const encoder = new TextEncoder()
  const line = (value: unknown): Uint8Array => encoder.encode(`${JSON.stringify(value)}\n`)
  const lines = (async function* (): AsyncIterable<Uint8Array> {
    yield line(request)
    for await (const part of partsOf(folder)) yield line(part)
  })()
  const response = await daemon.request('/cluster/launch', {
    method: 'POST',
    body: ReadableStream.from(lines),
  })
  if (!response.ok || response.body === null) throw new UserError(await sentenceOf(response))
  const splitter = new LineSplitter(launchLimits.partBytesMax * 4)
  try {
    for await (const chunk of response.body)
      for (const text of splitter.push(Buffer.from(chunk)))
        yield toLaunchClient.parse(JSON.parse(text))
  } catch (error) {
    if (error instanceof TypeError) return
    throw error
  }
}

async function sentenceOf(response: Response): Promise<string> {
  const body = (await response.json().catch(() => null)) as {
    error?: { message?: string }
  } | null
  return body?.error?.message ?? `The daemon answered ${response.status}`
}

/** Input and signals of this process to a running launch. Signals never wait behind input. */
export class InputForwarder {
  readonly #daemon: DaemonClient
  readonly #id: string

  constructor(daemon: DaemonClient, id: string) {
    this.#daemon = daemon
    this.#id = id
  }

  async send(input: LaunchInput): Promise<boolean> {
    const body = JSON.stringify(input)
    const path = `/cluster/launch/${this.#id}/input`
    const response = await this.#daemon.request(path, { method: 'POST', body }).catch(() => null)
    await response?.body?.cancel()
    return response?.ok === true
  }

  /** Reads only as fast as rank 0 does. */
  async forward(input: AsyncIterable<Buffer | string>): Promise<void> {
    try {
      for await (const chunk of input) {
        const bytes = Buffer.from(chunk)
        for (let at = 0; at < bytes.length; at += launchLimits.partBytesMax) {
          const piece = bytes.subarray(at, at + launchLimits.partBytesMax)
          if (!(await this.send({ stdin: piece.toString('base64') }))) return
        }
      }
    } catch {
      // An input that cannot be read is one that has ended.
    }
    await this.send({ stdinEnd: true })
  }
}
