// The page, as static files from one folder. Names are looked up in a list made at start, never in the
// file system, so no path trick can leave the folder.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { extname, join, relative } from 'node:path'
import type { GatewayApp } from './context.ts'

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
}

const contentPolicy =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

export function addPage(app: GatewayApp, folder: string): void {
  const files = new Map<string, { body: Buffer<ArrayBuffer>; type: string }>()
  if (existsSync(folder)) {
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const path = join(entry.parentPath, entry.name)
      const type = types[extname(entry.name)] ?? 'application/octet-stream'
      files.set(`/${relative(folder, path)}`, { body: readFileSync(path), type })
    }
  }
  app.get('/', (c) => {
    const page = files.get('/index.html')
    if (page === undefined)
      return c.text('The page has not been built; run "./bushel setup"\n', 503)
    return c.body(page.body, 200, {
      'content-type': page.type,
      'content-security-policy': contentPolicy,
      'cache-control': 'no-cache',
      'x-content-type-options': 'nosniff',
    })
  })
  for (const [path, { body, type }] of files) {
    if (path === '/index.html') continue
    const cache = path.startsWith('/assets/') ? 'public, max-age=31536000, immutable' : 'no-cache'
    app.get(path, (c) => c.body(body, 200, { 'content-type': type, 'cache-control': cache }))
  }
}
