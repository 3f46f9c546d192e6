// What machines do: crash at the worst moment, lose power, stand still, sleep, and have their clocks set.
import { settledCoordinator } from '../../core/membership/view.ts'
import type { SimHost } from '../host.ts'
import { type Fault, type FaultKind, type FaultSite, momentary, runningHost } from './fault.ts'

/** Down now, up again when it is undone. */
function down({ world, random }: FaultSite, host: SimHost, how: 'process' | 'power'): Fault {
  world.crash(host, how)
  const lastsMs = random.chance(0.5) ? random.between(200, 4000) : random.between(4000, 50_000)
  return { about: host.spec.name, lastsMs, undo: () => world.boot(host) }
}

const daemonCrash: FaultKind = {
  name: 'daemon-crash',
  weight: 4,
  begin(site) {
    const host = runningHost(site)
    return host === undefined ? null : down(site, host, 'process')
  },
}

const powerLoss: FaultKind = {
  name: 'power-loss',
  weight: 3,
  begin(site) {
    const host = runningHost(site)
    return host === undefined ? null : down(site, host, 'power')
  },
}

/** The machine that leads, in the middle of whatever it is doing. */
const coordinatorCrash: FaultKind = {
  name: 'coordinator-crash',
  weight: 3,
  begin(site) {
    const leading = site.world.hosts.find(({ isRunning, life, spec, monotonicMs }) => {
      const state = life?.machine.state
      return isRunning && state !== undefined && settledCoordinator(state, monotonicMs) === spec.id
    })
    if (leading === undefined) return null
    return down(site, leading, site.random.chance(0.5) ? 'process' : 'power')
  },
}

/** Dies after so many more of its words have left: between a journal write and a message, or between two. */
const crashBetweenEffects: FaultKind = {
  name: 'crash-between-effects',
  weight: 3,
  begin(site) {
    const host = runningHost(site)
    if (host === undefined) return null
    site.world.crashAfterEffects(host, site.random.whole(1, 12))
    const lastsMs = site.random.between(1000, 15_000)
    return { about: host.spec.name, lastsMs, undo: () => site.world.boot(host) }
  },
}

const everyDaemonCrash: FaultKind = {
  name: 'every-daemon-crash',
  weight: 1,
  begin({ world, random }) {
    const hosts = world.hosts.filter((host) => host.isRunning)
    for (const host of hosts) world.crash(host, 'process')
    const undo = (): void => {
      for (const host of hosts) world.after(random.between(0, 3000), () => world.boot(host))
    }
    return { about: `${hosts.length} machines`, lastsMs: random.between(500, 8000), undo }
  },
}

/** Up and down again and again: whoever follows every change never comes to rest. */
const restartStorm: FaultKind = {
  name: 'restart-storm',
  weight: 1,
  begin(site) {
    const { world, random } = site
    const host = runningHost(site)
    if (host === undefined) return null
    let isOver = false
    const turn = (): void => {
      if (isOver) return
      if (host.isUp) world.crash(host, 'process')
      else world.boot(host)
      world.after(random.between(300, 2500), turn)
    }
    turn()
    const undo = (): void => {
      isOver = true
      world.boot(host)
    }
    return { about: host.spec.name, lastsMs: random.between(5000, 20_000), undo }
  },
}

const daemonPause: FaultKind = {
  name: 'daemon-pause',
  weight: 4,
  begin(site) {
    const host = runningHost(site)
    if (host === undefined) return null
    host.pause()
    return {
      about: host.spec.name,
      lastsMs: site.random.between(1000, 20_000),
      undo: () => host.resume(),
    }
  },
}

const machineSleep: FaultKind = {
  name: 'machine-sleep',
  weight: 3,
  begin(site) {
    const host = runningHost(site)
    if (host === undefined) return null
    host.sleep()
    const undo = (): void => {
      if (!host.wake()) return
      for (const wire of site.world.network.wiresOf(host.spec.index)) site.world.network.reset(wire)
    }
    const { random } = site
    const lastsMs = random.chance(0.7)
      ? random.between(1000, 30_000)
      : random.between(30_000, 28_800_000)
    return { about: `${host.spec.name} for ${Math.round(lastsMs / 1000)} s`, lastsMs, undo }
  },
}

const clockJump: FaultKind = {
  name: 'clock-jump',
  weight: 2,
  begin(site) {
    const host = runningHost(site)
    if (host === undefined) return null
    host.wallOffsetMs += site.random.between(-3_600_000, 3_600_000)
    return momentary(host.spec.name)
  },
}

/** Some machines run another version for a while, as in the middle of an update. */
const versionMix: FaultKind = {
  name: 'version-mix',
  weight: 1,
  begin(site) {
    const host = runningHost(site)
    if (host === undefined) return null
    site.world.crash(host, 'process')
    host.version = host.version === '1.0.0' ? '1.1.0' : '1.0.0'
    const undo = (): void => site.world.boot(host)
    return { about: `${host.spec.name} to ${host.version}`, lastsMs: 1500, undo }
  },
}

export const machineFaults: readonly FaultKind[] = [
  daemonCrash,
  powerLoss,
  coordinatorCrash,
  crashBetweenEffects,
  everyDaemonCrash,
  restartStorm,
  daemonPause,
  machineSleep,
  clockJump,
  versionMix,
]
