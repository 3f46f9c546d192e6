// What the coordinator does next: settle the view, hold an epoch, bring wanted groups up and others down.
// It only advises; every agent checks the epoch and its own memory before it obeys.
import { type Decision, decision } from '../cluster/decision.ts'
import { wantedDeployments } from '../cluster/desired.ts'
import { groupsSeen } from '../cluster/groups.ts'
import type { GroupId } from '../ids.ts'
import { type Epoch, compareEpochs } from '../cluster/record.ts'
import type { MachineState, Moment } from '../cluster/state.ts'
import {
  chooseCoordinator,
  component,
  highestEpoch,
  settledCoordinator,
} from '../membership/view.ts'
import { mend, reconcile, stopUnwanted } from './reconcile.ts'
import { advanceStart } from './starts.ts'

export function decideCoordinator(state: MachineState, moment: Moment): Decision {
  const out = decision()
  if (state.view.revision !== state.viewRevision) {
    // Looked at again only when something changed that could matter; a thousand beats change nothing.
    const members = component(state)
    out.events.push({ kind: 'view-taken', members, coordinator: chooseCoordinator(state, members) })
    out.again = true
    return out
  }
  const { nowMs } = moment
  if (state.view.coordinator !== state.self.id) {
    if (state.term !== null) out.events.push({ kind: 'term-ended' })
    return out
  }
  if (settledCoordinator(state, nowMs) === null || !state.caughtUp) return out
  const highest = highestEpoch(state, state.view.members)
  if (state.term === null || compareEpochs(state.term.epoch, highest) < 0) {
    beginTerm(state, highest, out)
    return out
  }
  const groups = groupsSeen(state)
  for (const start of state.starts.values()) advanceStart(state, { start, groups, moment, out })
  const mending = new Set<GroupId>()
  for (const view of groups) {
    if (mend(state, { view, groups, nowMs, out })) mending.add(view.group)
    else stopUnwanted(state, { view, nowMs, out })
  }
  for (const deployment of wantedDeployments(state.registers)) {
    reconcile(state, { deployment, groups, mending, moment, out })
  }
  return out
}

/** The step writes the journal before its messages: the epoch is on disk before the first order. */
function beginTerm(state: MachineState, highest: Epoch, out: Decision): void {
  const epoch = { counter: highest.counter + 1, machine: state.self.id }
  out.events.push({ kind: 'term-begun', epoch })
  out.again = true
  out.effects.push({
    kind: 'note',
    level: 'info',
    text: 'this machine coordinates the cluster',
    about: { epoch: epoch.counter },
  })
}
