// The prober of the machine that this command runs on.
import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { createRealAccess } from '../../adapters/probers/access/real-access.ts'
import type { LinkSettings } from '../../adapters/probers/linux/links.ts'
import { createLinuxProber } from '../../adapters/probers/linux/linux-prober.ts'
import { createMacProber } from '../../adapters/probers/mac/mac-prober.ts'
import type { Platform } from '../../core/machine-facts/machine.ts'
import type { MachineAccess } from '../../ports/machine-access.ts'
import type { Prober } from '../../ports/prober.ts'
import { type CliContext, UserError } from '../command.ts'
import { loadSettings } from '../settings.ts'

export function localPlatform(): Platform {
  if (process.platform === 'darwin') return 'macos'
  if (process.platform === 'linux') return 'linux'
  throw new UserError(`Bushel knows macOS and Linux; this machine runs ${process.platform}`)
}

export function localName(): string {
  return hostname().split('.')[0] ?? 'this-machine'
}

/** The Python that ranks would run on; null before the first set-up. */
export function runtimePython(context: CliContext): string | null {
  const path = join(context.programDir, '.runtime', 'python', 'bin', 'python')
  return existsSync(path) ? path : null
}

/** What only the daemon knows of the ranks on this machine. */
export interface RankKnowledge {
  readonly expectedRankPids: () => readonly number[]
  readonly failedStartsThisBoot: () => number
}

export function createLocalProber(
  context: CliContext,
  access: MachineAccess = createRealAccess(context.env),
  ranks: RankKnowledge | null = null,
): Prober {
  const components = {
    ...ranks,
    name: localName(),
    access,
    nowMs: () => Date.now(),
    self: { pid: process.pid, uid: process.getuid?.() ?? -1 },
    runtimePython: runtimePython(context),
  }
  return localPlatform() === 'macos'
    ? createMacProber(components)
    : createLinuxProber({ ...components, linkSettings: readLinkSettings(context.env) })
}

function readLinkSettings(env: CliContext['env']): LinkSettings {
  return Object.fromEntries(
    Object.entries(loadSettings({}, env).links).map(([name, { kind, gbps }]) => [
      name,
      gbps === undefined ? { kind } : { kind, speedMbps: gbps * 1000 },
    ]),
  )
}
