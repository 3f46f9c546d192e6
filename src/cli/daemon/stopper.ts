// The end of a daemon: answers finish or fail, ranks go, the lock is given back.
import type { Server } from 'node:http'
import { limits } from '../../core/limits.ts'
import type { Machine } from '../../runtime/machine.ts'
import type { RankSupervisor } from '../../runtime/ranks.ts'
import type { Serving } from '../../runtime/serving.ts'
import { releaseDaemonFile } from '../daemon-file.ts'
import type { DaemonLog } from '../log.ts'
import type { Settings } from '../settings.ts'
import type { Launches } from './launch/launches.ts'
import type { Peers } from './peers.ts'

/** How long answers in flight may go on when the daemon is asked to stop; asked twice, it does not wait. */
const finishMsMax = limits.drainMsMax

export interface Stopper {
  /** Whatever takes requests. */
  readonly servers: Server[]
  readonly stop: (reason: string) => Promise<void>
}

export function createStopper(parts: {
  settings: Settings
  machine: Machine
  serving: Serving
  ranks: RankSupervisor
  peers: Peers
  launches: Launches
  log: DaemonLog
  finish: () => void
}): Stopper {
  const { settings, machine, serving, ranks, peers, launches, log, finish } = parts
  let stopping: Promise<void> | null = null
  let isHurried = false
  const stopper: Stopper = {
    servers: [],
    stop: (reason: string): Promise<void> => {
      isHurried = stopping !== null
      stopping ??= run(reason)
      return stopping
    },
  }
  async function run(reason: string): Promise<void> {
    log.logger.info({ reason }, 'stopping')
    for (const server of stopper.servers) server.close()
    // Nothing new comes here, and other machines take over what they can meanwhile.
    machine.post({
      kind: 'self-change',
      change: { accepts: { ok: false, reason: 'it is being stopped' } },
    })
    await launches.stop()
    await until(() => isHurried || serving.generations.liveCount === 0, finishMsMax)
    serving.generations.failAll({
      code: 'stopping',
      message: 'Bushel is being stopped on this machine; ask again when it is back',
    })
    machine.stop()
    ranks.signalAll('TERM')
    await until(() => ranks.livePids().length === 0, limits.rankTermMsMax)
    ranks.signalAll('KILL')
    await until(() => ranks.livePids().length === 0, limits.rankTermMsMax)
    await peers.stop()
    for (const server of stopper.servers) server.closeAllConnections()
    releaseDaemonFile(settings.home)
    log.close()
    finish()
  }
  return stopper
}

async function until(done: () => boolean, msMax: number): Promise<void> {
  const end = performance.now() + msMax
  while (!done() && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 20))
}
