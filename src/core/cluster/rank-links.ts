// Who speaks to whom inside a group. Each rank listens once and is dialled by exactly one other; the head of
// a group with several stages is dialled back by the last stage's leader, which returns the token ids.
import { type GroupPlan, type PlacedRank, placedRanks } from './group-plan.ts'

export interface RankLinks {
  /** The rank that dials this one; null for a head without anyone behind it. */
  readonly from: number | null
  /** The leader of the next stage, dialled by this stage's leader. */
  readonly next: number | null
  /** The other ranks of this stage's world, dialled by its leader. */
  readonly followers: readonly number[]
  /** The head, dialled by the leader of the last stage. */
  readonly back: number | null
  /** In a world: the rank before this one in the ring, on whose link its ring address must lie. */
  readonly ringPrevious: number | null
}

export function rankLinks(plan: GroupPlan, rank: number): RankLinks {
  const placed = placedRanks(plan)
  const me = placed[rank]
  if (me === undefined)
    return { from: null, next: null, followers: [], back: null, ringPrevious: null }
  const world = placed.filter((other) => other.stage === me.stage)
  const leader = world[0]
  const isLeader = me === leader
  const lastStage = plan.stages.length - 1
  const leaderOf = (stage: number): number | null =>
    placed.find((other) => other.stage === stage)?.rank ?? null
  return {
    from: dialledBy(me, { isLeader, leader, lastStage, leaderOf }),
    next: isLeader && me.stage < lastStage ? leaderOf(me.stage + 1) : null,
    followers: isLeader ? world.slice(1).map((other) => other.rank) : [],
    back: isLeader && me.stage === lastStage && lastStage > 0 ? 0 : null,
    ringPrevious: world.length < 2 ? null : (world.at(me.worldRank - 1)?.rank ?? null),
  }
}

function dialledBy(
  me: PlacedRank,
  place: {
    isLeader: boolean
    leader: PlacedRank | undefined
    lastStage: number
    leaderOf: (stage: number) => number | null
  },
): number | null {
  if (!place.isLeader) return place.leader?.rank ?? null
  if (me.stage > 0) return place.leaderOf(me.stage - 1)
  return place.lastStage > 0 ? place.leaderOf(place.lastStage) : null
}
