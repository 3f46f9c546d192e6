// How commands speak to the daemon of a home folder: over its own HTTP port, with its own token.
import { type CliContext, UserError, exitCodes } from './command.ts'
import { type DaemonFile, readDaemonFile } from './daemon-file.ts'
import { homeDir, loadSettings } from './settings.ts'

export class DaemonClient {
  readonly #file: DaemonFile

  constructor(file: DaemonFile) {
    this.#file = file
  }

  get pid(): number {
    return this.#file.pid
  }

  get url(): string {
    const host =
      this.#file.host === '0.0.0.0' || this.#file.host === '::' ? '127.0.0.1' : this.#file.host
    return `http://${host.includes(':') ? `[${host}]` : host}:${this.#file.port}`
  }

  get startedAt(): string {
    return this.#file.startedAt
  }

  async get(path: string): Promise<unknown> {
    return this.#json(await this.request(path))
  }

  async post(path: string, body: unknown): Promise<unknown> {
    return this.#json(await this.request(path, { method: 'POST', body: JSON.stringify(body) }))
  }

  async remove(path: string): Promise<unknown> {
    return this.#json(await this.request(path, { method: 'DELETE' }))
  }

  async request(
    path: string,
    init: { method?: string; body?: string | ReadableStream; signal?: AbortSignal } = {},
  ): Promise<Response> {
    try {
      return await fetch(`${this.url}${path}`, {
        ...init,
        // A body that is made on the way is sent before the answer is read.
        ...(init.body instanceof ReadableStream ? { duplex: 'half' } : {}),
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${this.#file.token}`,
        },
      })
    } catch (error) {
      if (init.signal?.aborted === true) throw error
      throw new UserError(
        `The daemon (pid ${this.#file.pid}) does not answer at ${this.url}; its log is shown by "bushel logs"`,
        {
          exitCode: exitCodes.daemonMissing,
          cause: error,
        },
      )
    }
  }

  async #json(response: Response): Promise<unknown> {
    const body: unknown = await response.json().catch(() => null)
    if (response.ok) return body
    const message = (body as { error?: { message?: string } } | null)?.error?.message
    throw new UserError(message ?? `The daemon answered ${response.status}`)
  }
}

export function findDaemon(home: string): DaemonClient | null {
  const file = readDaemonFile(home)
  return file === null ? null : new DaemonClient(file)
}

export function requireDaemon(home: string): DaemonClient {
  const client = findDaemon(home)
  if (client !== null) return client
  throw new UserError('No daemon is running; start one with "bushel up"', {
    exitCode: exitCodes.daemonMissing,
  })
}

/** Where the daemon of this home answers, or would: for commands that can do without it. */
export function daemonUrl(env: CliContext['env']): string {
  return findDaemon(homeDir(env))?.url ?? `http://127.0.0.1:${loadSettings({}, env).port}`
}
