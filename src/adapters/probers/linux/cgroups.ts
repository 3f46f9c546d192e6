// Control groups: what this process may really use, in either version of them. The tightest limit on
// the way up to the root counts, because a parent's limit binds its children.
import { type Fact, known } from '../../../core/machine-facts/fact.ts'
import type { MachineAccess } from '../../../ports/machine-access.ts'
import { textOfFile } from '../outcome.ts'
import { wholeNumber } from '../text.ts'

export interface GroupLimits {
  readonly memoryBytes: Fact<number | null>
  readonly cpus: Fact<number | null>
}

/** Version 1 prints the largest page-aligned number for "no limit". */
const unlimitedBytes = 2 ** 60

export async function probeGroupLimits(
  access: Pick<MachineAccess, 'readText'>,
): Promise<GroupLimits> {
  const membership = textOfFile('/proc/self/cgroup', await access.readText('/proc/self/cgroup'))
  if (!membership.known) return { memoryBytes: membership, cpus: membership }
  const groups = parseMembership(membership.value)
  const read = async (path: string): Promise<string | null> => {
    const outcome = await access.readText(path)
    return outcome.kind === 'text' ? outcome.text.trim() : null
  }
  const memory: number[] = []
  const cpus: number[] = []
  for (const folder of groupFolders(groups)) {
    memory.push(...memoryLimits([await read(`${folder}/memory.max`)]))
    memory.push(...memoryLimits([await read(`${folder}/memory.limit_in_bytes`)]))
    const max = await read(`${folder}/cpu.max`)
    const [quota = null, period = null] =
      max === null
        ? [await read(`${folder}/cpu.cfs_quota_us`), await read(`${folder}/cpu.cfs_period_us`)]
        : max.split(' ')
    const count = cpuCount(quota, period)
    if (count !== null) cpus.push(count)
  }
  return {
    memoryBytes: known(memory.length === 0 ? null : Math.min(...memory)),
    cpus: known(cpus.length === 0 ? null : Math.min(...cpus)),
  }
}

interface Membership {
  /** Empty for version 2. */
  readonly controllers: readonly string[]
  readonly path: string
}

export function parseMembership(text: string): readonly Membership[] {
  return text.split('\n').flatMap((line) => {
    const match = /^\d+:([^:]*):(\/.*)$/.exec(line)
    if (match === null) return []
    return [{ controllers: (match[1] ?? '').split(',').filter(Boolean), path: match[2] ?? '/' }]
  })
}

/** Every folder from our own group up to the root, of version 2 and of version 1's two controllers. */
function groupFolders(groups: readonly Membership[]): readonly string[] {
  const folders = groups.flatMap((group) => {
    const roots =
      group.controllers.length === 0
        ? ['/sys/fs/cgroup', '/sys/fs/cgroup/unified']
        : group.controllers
            .filter((name) => name === 'memory' || name === 'cpu')
            .map((name) => `/sys/fs/cgroup/${name}`)
    return roots.flatMap((root) => upwards(group.path).map((path) => `${root}${path}`))
  })
  return [...new Set(folders)]
}

function upwards(path: string): readonly string[] {
  const parts = path.split('/').filter((part) => part !== '' && part !== '..')
  return parts.map((_, index) => `/${parts.slice(0, parts.length - index).join('/')}`).concat('')
}

function memoryLimits(texts: readonly (string | null)[]): readonly number[] {
  return texts.flatMap((text) => {
    const bytes = text === null || !/^\d+$/.test(text) ? null : Number(text)
    return bytes === null || bytes >= unlimitedBytes ? [] : [bytes]
  })
}

function cpuCount(quota: string | null, period: string | null): number | null {
  const micros = wholeNumber(quota ?? '')
  const perMicros = wholeNumber(period ?? '')
  return micros === null || perMicros === null || perMicros === 0 ? null : micros / perMicros
}
