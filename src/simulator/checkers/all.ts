// Every checker of a run. S5–S8 are checked by the clients themselves, token by token.
import type { Figures } from '../figures.ts'
import { boundChecker } from './bounds.ts'
import type { Checker, Scene } from './checker.ts'
import { epochChecker } from './epochs.ts'
import { fileChecker } from './files.ts'
import { groupChecker } from './groups.ts'
import { livenessChecker } from './liveness.ts'
import { memoryChecker } from './memory.ts'
import { orderChecker } from './order.ts'
import { orphanChecker } from './orphans.ts'
import { registerChecker } from './registers.ts'
import { stopChecker } from './stops.ts'
import { strangerChecker } from './strangers.ts'

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
    boundChecker(scene, figures),
    livenessChecker(scene),
    {
      attempted: (_host, order) => clients.attempted(order),
      crashed: (host) => clients.gatewayLost(host),
    },
  ]
}
