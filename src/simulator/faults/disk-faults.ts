// What disks do: fill up, tear, come back from a backup, and vanish.
import type { Fault, FaultKind, FaultSite } from './fault.ts'
import { runningHost } from './fault.ts'
import type { SimHost } from '../host.ts'

const diskFull: FaultKind = {
  name: 'disk-full',
  weight: 2,
  begin(site) {
    const host = runningHost(site)
    if (host === undefined) return null
    host.disk.isFull = true
    const undo = (): void => {
      host.disk.isFull = false
    }
    return { about: host.spec.name, lastsMs: site.random.between(2000, 40_000), undo }
  },
}

/** The machine goes down, something happens to its disk, and it comes back. */
function whileDown(site: FaultSite, change: (host: SimHost) => string | null): Fault | null {
  const host = runningHost(site)
  if (host === undefined) return null
  const about = change(host)
  if (about === null) return null
  site.world.crash(host, 'power')
  const lastsMs = site.random.between(1000, 20_000)
  return { about: `${host.spec.name} ${about}`, lastsMs, undo: () => site.world.boot(host) }
}

const journalTorn: FaultKind = {
  name: 'journal-torn',
  weight: 2,
  begin: (site) =>
    whileDown(site, (host) => {
      host.disk.truncate(site.random)
      return 'cut short'
    }),
}

const backupRestored: FaultKind = {
  name: 'backup-restored',
  weight: 3,
  begin: (site) =>
    whileDown(site, (host) => {
      const backup = site.random.pick(host.disk.backups)
      if (backup === undefined) return null
      host.disk.restore(backup)
      return `as it was at ${Math.round(backup.atMs / 1000)} s`
    }),
}

/** Nothing is left of what it knew; somebody invites it again. */
const stateLost: FaultKind = {
  name: 'state-lost',
  weight: 1,
  begin: (site) =>
    site.world.hosts.length === 1
      ? null
      : whileDown(site, (host) => {
          host.disk.lose()
          return 'empty'
        }),
}

export const diskFaults: readonly FaultKind[] = [diskFull, journalTorn, backupRestored, stateLost]
