// Which world the ranks of a launch form, and in which order they stand: the backend a person named, or the
// best that passes every check. Addresses of a TCP ring are asked of the machines themselves afterwards.
import { type BackendChoice, chooseBackend } from '../backends/choose-backend.ts'
import type { DeviceMatrix } from '../backends/device-matrix.ts'
import type { MachineFacts } from '../machine-facts/machine.ts'

export type LaunchBackend = 'auto' | 'ring' | 'jaccl' | 'jaccl-ring' | 'nccl'

export interface LaunchMachine {
  readonly name: string
  /** "darwin-arm64", "linux-x64". */
  readonly platform: string
}

export type LaunchWorld =
  | { readonly kind: 'alone'; readonly order: readonly string[]; readonly why: string }
  | { readonly kind: 'ring'; readonly order: readonly string[]; readonly why: string }
  | { readonly kind: 'nccl'; readonly order: readonly string[]; readonly why: string }
  | {
      readonly kind: 'jaccl'
      readonly shape: 'mesh' | 'ring'
      readonly order: readonly string[]
      readonly matrix: DeviceMatrix
      /** Of rank 0, where the others meet it. */
      readonly address: string
      readonly why: string
    }
  | { readonly kind: 'refused'; readonly reason: string }

/** Whether facts of the machines decide anything: collecting them takes a while. */
export function needsFacts(backend: LaunchBackend, machines: readonly LaunchMachine[]): boolean {
  if (machines.length < 2) return false
  if (backend === 'jaccl' || backend === 'jaccl-ring') return true
  return backend === 'auto' && strangersToJaccl(machines).length === 0
}

const strangersToJaccl = (machines: readonly LaunchMachine[]): readonly LaunchMachine[] =>
  machines.filter((one) => !one.platform.startsWith('darwin'))

export function launchWorld(about: {
  readonly backend: LaunchBackend
  readonly machines: readonly LaunchMachine[]
  /** Null when they were not needed. */
  readonly facts: readonly MachineFacts[] | null
  readonly busyMachines: readonly string[]
}): LaunchWorld {
  const { backend, machines, facts } = about
  const order = machines.map((one) => one.name)
  if (order.length < 2)
    return { kind: 'alone', order, why: 'one machine needs no backend between machines' }
  if (backend === 'ring' || backend === 'nccl')
    return { kind: backend, order, why: `${backend} was asked for` }
  if (facts === null) {
    const [first] = strangersToJaccl(machines)
    const reason = `not JACCL: ${first?.name ?? 'a machine'} is no Mac`
    return { kind: 'ring', order, why: `TCP ring; ${reason}` }
  }
  const rendezvous = { kind: 'port', port: 0 } as const
  const choice = chooseBackend({ machines: facts, busyMachines: about.busyMachines, rendezvous })
  return fromChoice(choice, backend, order)
}

function fromChoice(
  choice: BackendChoice,
  backend: LaunchBackend,
  order: readonly string[],
): LaunchWorld {
  const wantsShape = backend === 'jaccl-ring' ? 'ring' : 'mesh'
  if (choice.kind === 'jaccl') {
    const { shape, matrix, rendezvous, why } = choice
    if (backend !== 'auto' && shape !== wantsShape)
      return {
        kind: 'refused',
        reason: `${backend} does not fit: the cables form a ${shape}; leave --backend out`,
      }
    if (rendezvous.kind === 'coordinator')
      return { kind: 'jaccl', shape, order: choice.order, matrix, address: rendezvous.address, why }
  }
  if (backend === 'auto') {
    // Without a network that both sides name alike, the daemons' own links may still carry a ring.
    return { kind: 'ring', order: choice.kind === 'ring' ? choice.order : order, why: choice.why }
  }
  return { kind: 'refused', reason: `${backend} cannot be used; ${choice.why}` }
}
