// Joins the endpoints of ranks to this daemon's links, with its owner's word on what each link is.
import { type RankLink, RankEndpoints } from '../../adapters/peers/rank-endpoints.ts'
import { roster } from '../../core/cluster/desired.ts'
import type { MachineId } from '../../core/ids.ts'
import type { Machine } from '../../runtime/machine.ts'
import type { Settings } from '../settings.ts'

const kindRank = { thunderbolt: 3, ethernet: 2, wifi: 1 } as const

export function rankEndpoints(parts: {
  self: MachineId
  settings: Settings
  links: () => readonly RankLink[]
  machine: () => Machine
}): RankEndpoints {
  const { self, settings, links, machine } = parts
  return new RankEndpoints({
    self,
    links,
    preference: (link) => {
      const kind = settings.links[link]?.kind
      // Unsaid is as good as a wire: Wi-Fi is what people name.
      return kind === undefined ? kindRank.ethernet : kindRank[kind]
    },
    nameOf: (id) => roster(machine().state.registers).get(id)?.name ?? id.slice(0, 8),
  })
}
