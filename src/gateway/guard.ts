// Who may talk to this gateway: known host names, no foreign web pages, and a key wherever one exists.
import { timingSafeEqual, createHash } from 'node:crypto'
import type { MiddlewareHandler } from 'hono'
import { ApiError } from './api-error.ts'
import type { Caller, GatewayEnv } from './context.ts'

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
/** What changes models or names for everyone. */
const adminPaths = new Set(['/api/pull', '/api/delete', '/api/copy'])
/** What runs programs: only whoever can read the daemon's home may, keys or not. */
const tokenPaths = /^\/cluster\/launch(\/|$)/
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
    // Claude Code may send two different keys at once; one that is known is enough.
    const keys = [bearerOf(c.req.header('authorization')), c.req.header('x-api-key') ?? '']
    const given = keys.filter((key) => key !== '')
    c.set('caller', callerOf(given, c.req.path, options))
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

function bearerOf(authorization: string | undefined): string {
  return authorization?.replace(/^Bearer\s+/i, '') ?? ''
}

/** Throws unless one of the keys opens the path. */
function callerOf(keys: readonly string[], path: string, options: GuardOptions): Caller {
  const scope = keys[0] === undefined ? '' : hashKey(keys[0]).slice(0, 32)
  if (keys.some((key) => sameText(key, options.adminToken))) return { admin: true, scope }
  if (tokenPaths.test(path)) {
    const message = "Launches take the daemon's own token; use the bushel command on this machine"
    throw new ApiError({ status: 403, message, code: 'not_admin' })
  }
  const hashes = options.keyHashes()
  if (hashes.length === 0 && options.isLoopback) return { admin: true, scope }
  const known = keys.map(hashKey).find((hash) => hashes.some((other) => sameText(other, hash)))
  if (known !== undefined) {
    const isOpen = !path.startsWith('/cluster/') || readable.has(path)
    if (isOpen && !adminPaths.has(path)) return { admin: false, scope: known.slice(0, 32) }
    const message = 'This key may ask models but not change the cluster'
    throw new ApiError({ status: 403, message, code: 'not_admin' })
  }
  // The page itself holds no secret; what it asks for is checked like everyone's requests.
  const isPage = path === '/' || path.startsWith('/assets/')
  if (isPage || openPaths.has(path)) return { admin: false, scope }
  throw new ApiError({
    status: 401,
    message:
      keys.length === 0
        ? 'Send an API key as "Authorization: Bearer KEY"'
        : 'This API key is not known here',
    type: 'authentication_error',
    code: 'invalid_api_key',
  })
}

function sameText(a: string, b: string): boolean {
  const left = createHash('sha256').update(a).digest()
  return timingSafeEqual(left, createHash('sha256').update(b).digest())
}
