// Who may talk to this gateway: known host names, no foreign web pages, and a key wherever one exists.
import { timingSafeEqual, createHash } from 'node:crypto'
import type { MiddlewareHandler } from 'hono'
import { ApiError } from './api-error.ts'
import type { GatewayEnv } from './context.ts'

export interface GuardOptions {
  /** Names and addresses under which this machine may be addressed, without port. */
  readonly hostNames: readonly string[]
  /** Hashes of keys that may ask models; empty while nobody has made one. */
  readonly keyHashes: () => readonly string[]
  /** The daemon's own token, known to whoever can read its home folder. */
  readonly adminToken: string
  readonly isLoopback: boolean
}

const openPaths = new Set(['/healthz', '/readyz'])
/** What whoever may ask models may also see. */
const readable = new Set(['/cluster/view'])
const loopbackNames = ['localhost', '127.0.0.1', '[::1]', '::1']

export function hashKey(key: string): string {
  return createHash('sha256').update(key).digest('hex')
}

export function guard(options: GuardOptions): MiddlewareHandler<GatewayEnv> {
  const hosts = new Set([...loopbackNames, ...options.hostNames.map((name) => name.toLowerCase())])
  return async (c, next) => {
    const host = c.req.header('host')
    // A rebound DNS name reaches a loopback port; the Host header gives it away.
    if (host === undefined || !hosts.has(nameOf(host))) {
      const message = `Host "${host ?? ''}" is not a name of this machine; add it to allowed_hosts in config.toml`
      throw new ApiError({ status: 403, message, code: 'host_not_allowed' })
    }
    const origin = c.req.header('origin')
    if (origin !== undefined && !isOwnOrigin(origin, hosts)) {
      const message = `Pages of ${origin} may not use this server`
      throw new ApiError({ status: 403, message, code: 'origin_not_allowed' })
    }
    if (!openPaths.has(c.req.path))
      checkKey(
        c.req.header('authorization') ?? bearer(c.req.header('x-api-key')),
        c.req.path,
        options,
      )
    await next()
  }
}

function nameOf(host: string): string {
  return host.replace(/:\d+$/, '').toLowerCase()
}

function isOwnOrigin(origin: string, hosts: ReadonlySet<string>): boolean {
  try {
    return hosts.has(new URL(origin).hostname.toLowerCase())
  } catch {
    return false
  }
}

function bearer(key: string | undefined): string | undefined {
  return key === undefined ? undefined : `Bearer ${key}`
}

function checkKey(authorization: string | undefined, path: string, options: GuardOptions): void {
  const key = authorization?.replace(/^Bearer\s+/i, '') ?? ''
  if (key !== '' && sameText(key, options.adminToken)) return
  const hashes = options.keyHashes()
  // The page itself holds no secret; what it asks for is checked like everyone's requests.
  const isPage = path === '/' || path.startsWith('/assets/')
  if (isPage || (hashes.length === 0 && options.isLoopback)) return
  const hash = hashKey(key)
  if (hashes.some((known) => sameText(known, hash))) {
    if (!path.startsWith('/cluster/') || readable.has(path)) return
    throw new ApiError({
      status: 403,
      message: 'This key may ask models but not change the cluster',
      code: 'not_admin',
    })
  }
  const message =
    key === '' ? 'Send an API key as "Authorization: Bearer KEY"' : 'This API key is not known here'
  throw new ApiError({
    status: 401,
    message,
    type: 'authentication_error',
    code: 'invalid_api_key',
  })
}

function sameText(a: string, b: string): boolean {
  const left = createHash('sha256').update(a).digest()
  return timingSafeEqual(left, createHash('sha256').update(b).digest())
}
