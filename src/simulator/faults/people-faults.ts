// What people do while everything else goes wrong: empty machines, remove them, change their minds; and
// what strangers try.
import { machineId } from '../../core/ids.ts'
import { type FaultKind, momentary, runningHost, someHost } from './fault.ts'

const machineDrained: FaultKind = {
  name: 'machine-drained',
  weight: 2,
  begin(site) {
    const host = runningHost(site)
    if (host === undefined) return null
    site.operators.setAccepting(host, false)
    const undo = (): void => site.operators.setAccepting(host, true)
    return { about: host.spec.name, lastsMs: site.random.between(5000, 50_000), undo }
  },
}

/** Taken out of the roster; invited again at the end. */
const machineRemoved: FaultKind = {
  name: 'machine-removed',
  weight: 2,
  begin(site) {
    if (site.world.hosts.length < 3) return null
    const host = someHost(site, (other) => other.isRunning && other.trusts(other.spec.id))
    if (host === undefined || !site.operators.remove(host)) return null
    // At the same moment somebody who has not heard of it writes the machine's entry anew.
    if (site.random.chance(0.5)) site.operators.touch(host)
    const undo = (): void => void site.operators.admit(host)
    return { about: host.spec.name, lastsMs: site.random.between(5000, 70_000), undo }
  },
}

/** It takes itself out, and is invited again later. */
const machineLeaves: FaultKind = {
  name: 'machine-leaves',
  weight: 2,
  begin(site) {
    if (site.world.hosts.length < 3) return null
    const host = someHost(site, (other) => other.isRunning && other.trusts(other.spec.id))
    if (host === undefined || !site.operators.leave(host)) return null
    const undo = (): void => void site.operators.admit(host)
    return { about: host.spec.name, lastsMs: site.random.between(12_000, 70_000), undo }
  },
}

/** A machine of the cluster answers a question that another was asked. */
const impostorAnswers: FaultKind = {
  name: 'impostor-answers',
  weight: 1,
  begin({ world, clients, random }) {
    const request = random.pick(clients.open.filter(({ speaker }) => speaker !== null))
    const { speaker, host, life, received } = request ?? {}
    if (request === undefined || speaker == null || host === undefined || !host.isRunning)
      return null
    const impostor = random.pick(
      world.hosts.filter(
        ({ spec }) => spec !== host.spec && spec.id !== speaker.machine && host.trusts(spec.id),
      ),
    )
    if (impostor === undefined || life?.events == null) return null
    life.events.generationMessage(impostor.spec.id, {
      kind: 'attempt-token',
      attempt: speaker.attempt,
      position: received?.length ?? 0,
      token: { id: 1, parts: [{ type: 'content', text: 'impostor' }] },
    })
    return momentary(`${impostor.spec.name} to ${host.spec.name}, ${speaker.attempt}`)
  },
}

const rosterTouched: FaultKind = {
  name: 'roster-touched',
  weight: 1,
  begin({ world, operators, random }) {
    const host = random.pick(world.hosts)
    return host !== undefined && operators.touch(host) ? momentary(host.spec.name) : null
  },
}

const wishesChanged: FaultKind = {
  name: 'wishes-changed',
  weight: 4,
  begin({ world, operators, random }) {
    const model = random.pick(world.scenario.models)
    if (model === undefined) return null
    const isUnload = random.chance(0.3)
    if (isUnload) operators.unload(model)
    else operators.load(model)
    return momentary(`${isUnload ? 'unload' : 'load'} ${model.name}`)
  },
}

/** Words of machines that nobody admitted, past a transport that let them through. */
const strangerSpeaks: FaultKind = {
  name: 'stranger-speaks',
  weight: 1,
  begin(site) {
    const host = runningHost(site)
    const events = host?.life?.events
    if (host === undefined || events == null) return null
    const stranger = machineId(site.random.hex(16))
    const epoch = { counter: 1_000_000, machine: stranger }
    events.heartbeat(stranger, 'ethernet', {
      boot: 'stranger',
      incarnation: 9_999_999_999,
      revision: 5,
      digest: 'none',
      epoch,
      role: 'always',
      hears: [host.spec.id],
      follows: stranger,
    })
    const version = { counter: 1_000_000, machine: stranger, boot: 'stranger' }
    const register = { version, value: { stranger: true } }
    events.clusterMessage(stranger, { kind: 'registers', entries: [['setting/x', register]] })
    for (const rank of site.world.farm.livingOn(host)) {
      events.clusterMessage(stranger, {
        kind: 'group-stop',
        epoch,
        group: rank.load.group as never,
        deployment: 'any' as never,
        reason: 'because',
        drain: false,
      })
    }
    return momentary(host.spec.name)
  },
}

export const peopleFaults: readonly FaultKind[] = [
  machineDrained,
  machineRemoved,
  machineLeaves,
  impostorAnswers,
  rosterTouched,
  wishesChanged,
  strangerSpeaks,
]
