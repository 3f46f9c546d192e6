// Every checker of a run. S5–S8 are checked by the clients themselves, token by token, and by attempts.ts.
import type { Figures } from '../figures.ts'
import { attemptChecker } from './attempts.ts'
import { boundChecker } from './bounds.ts'
import type { Checker, Scene } from './checker.ts'
import { circulationChecker } from './circulation.ts'
import { coordinationChecker } from './coordination.ts'
import { epochChecker } from './epochs.ts'
import { fileChecker } from './files.ts'
import { groupChecker } from './groups.ts'
import { memoryChecker } from './memory.ts'
import { orderChecker } from './order.ts'
import { orphanChecker } from './orphans.ts'
import { readinessChecker } from './readiness.ts'
import { registerChecker } from './registers.ts'
import { restChecker } from './rest.ts'
import { stopChecker } from './stops.ts'
import { strangerChecker } from './strangers.ts'
import { workChecker } from './work.ts'

export function allCheckers(scene: Scene, figures: Figures): readonly Checker[] {
  const { clients } = scene
  return [
    memoryChecker(scene),
    epochChecker(scene),
    groupChecker(scene),
    orphanChecker(scene),
    stopChecker(scene),
    registerChecker(scene),
    orderChecker(scene),
    fileChecker(scene),
    strangerChecker(scene),
    attemptChecker(scene),
    workChecker(scene),
    circulationChecker(scene),
    boundChecker(scene, figures),
    coordinationChecker(scene),
    readinessChecker(scene),
    restChecker(scene),
    {
      attempted: (_host, order) => clients.attempted(order),
      attemptEnded: (attempt) => clients.attemptOver(attempt),
      attemptCancelled: (attempt) => clients.attemptOver(attempt),
      crashed: (host) => clients.gatewayLost(host),
    },
  ]
}
