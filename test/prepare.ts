// What the suites need beyond the program itself: a browser, and tools for network namespaces.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

export type Need = 'browser' | 'namespaces'

const browsers = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** Debian packages by the command that shows whether they are there. */
const tools: Readonly<Record<Need, readonly (readonly [string, string])[]>> = {
  browser: [['chromium', 'chromium']],
  namespaces: [
    ['ip', 'iproute2'],
    ['tc', 'iproute2'],
    ['unshare', 'util-linux'],
    ['nsenter', 'util-linux'],
    ['ps', 'procps'],
  ],
}

export function browserPath(): string | null {
  const named = process.env['BUSHEL_CHROMIUM']
  if (named !== undefined && existsSync(named)) return named
  return browsers.find((path) => existsSync(path)) ?? null
}

export async function prepare(needs: ReadonlySet<Need>): Promise<void> {
  const missing = new Set<string>()
  for (const need of needs) {
    if (need === 'browser' && browserPath() !== null) continue
    for (const [command, packageName] of tools[need]) if (!has(command)) missing.add(packageName)
  }
  if (missing.size === 0) return
  if (process.platform === 'linux' && process.getuid?.() === 0 && has('apt-get')) {
    console.log(`installing ${[...missing].join(', ')} …`)
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    execFileSync('apt-get', ['update', '-qq'], { stdio: ['ignore', 'ignore', 'inherit'], env })
    execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...missing], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env,
    })
    return
  }
  if (missing.has('chromium')) {
    console.log('fetching a browser with Playwright …')
    execFileSync('npx', ['playwright-core', 'install', 'chromium'], { stdio: 'inherit' })
  }
}

function has(command: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${command}`], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
