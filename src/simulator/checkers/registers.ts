// S11: desired state is what the updates say, whatever their order. Each machine's registers are compared
// with a second, much simpler merge of everything it was ever given, and equal digests with each other.
import type { Register, Registers } from '../../core/cluster/registers.ts'
import { roster } from '../../core/cluster/desired.ts'
import type { MachineInput } from '../../core/machine/inputs.ts'
import type { StepSeen } from '../../runtime/machine.ts'
import type { SimHost } from '../host.ts'
import { type Checker, type Scene, nameOf } from './checker.ts'

export function registerChecker({ world }: Scene): Checker {
  const { verdict } = world
  const expected = new Map<SimHost, Map<string, Register>>()
  const prints = new Map<string, string>()
  return {
    booted(host) {
      expected.set(host, new Map(host.disk.peek()?.registers ?? []))
    },
    stepped(host, step) {
      const known = expected.get(host)
      if (known === undefined || !isAboutRegisters(step)) return
      const { input, before, after } = step
      if (input.kind === 'registers-replace') expected.set(host, new Map(input.registers))
      else
        for (const [key, register] of given(input, before.registers, after.registers, host))
          offer(known, key, register)
      const reference = expected.get(host) ?? known
      verdict.check(
        'S11',
        isSame(reference, after.registers),
        () =>
          `${nameOf(host)} holds ${differences(reference, after.registers)} after ${input.kind}`,
      )
    },
    second() {
      for (const host of world.hosts) {
        const state = host.life?.machine.state
        if (state === undefined) continue
        const print = printOf(state.registers)
        const known = prints.get(state.registersDigest) ?? print
        prints.set(state.registersDigest, known)
        verdict.check(
          'S11',
          known === print,
          () => `${nameOf(host)} shows a digest that once meant another state`,
        )
      }
    },
  }
}

const printed = new WeakMap<Registers, string>()

/** All of the registers as one text. */
function printOf(registers: Registers): string {
  const known = printed.get(registers)
  if (known !== undefined) return known
  const lines = [...registers].map(
    ([key, register]) => `${key} ${rankOf(key, register)} ${register.value === undefined}`,
  )
  const print = lines.sort().join('\n')
  printed.set(registers, print)
  return print
}

function isAboutRegisters({ input, before, after }: StepSeen): boolean {
  return (
    before.registers !== after.registers ||
    (input.kind === 'message' && input.message.kind === 'registers')
  )
}

/** The updates that came with an input: from another machine, or written here. */
function given(
  input: MachineInput,
  before: Registers,
  after: Registers,
  host: SimHost,
): Iterable<readonly [string, Register]> {
  if (input.kind === 'message' && input.message.kind === 'registers')
    return roster(before).has(input.from) ? input.message.entries : []
  if (input.kind !== 'registers-write') return []
  return input.writes.flatMap(({ key, value }) => {
    const version = after.get(key)?.version
    return version?.machine === host.spec.id ? [[key, { version, value }] as const] : []
  })
}

function offer(known: Map<string, Register>, key: string, register: Register): void {
  const old = known.get(key)
  if (old === undefined || rankOf(key, register) > rankOf(key, old)) known.set(key, register)
}

/** One text per register such that the greater text wins. */
function rankOf(key: string, { version, value }: Register): string {
  const isForEver = /^(roster|key)\//.test(key) && value === undefined
  const counter = version.counter.toString().padStart(16, '0')
  return `${isForEver ? 1 : 0} ${counter} ${version.machine} ${version.boot}`
}

function isSame(a: ReadonlyMap<string, Register>, b: Registers): boolean {
  if (a.size !== b.size) return false
  for (const [key, register] of a) {
    const other = b.get(key)
    if (other === undefined || rankOf(key, other) !== rankOf(key, register)) return false
    if ((other.value === undefined) !== (register.value === undefined)) return false
  }
  return true
}

function differences(a: ReadonlyMap<string, Register>, b: Registers): string {
  const keys = new Set([...a.keys(), ...b.keys()])
  const wrong = [...keys].filter((key) => {
    const [one, other] = [a.get(key), b.get(key)]
    return one === undefined || other === undefined || rankOf(key, one) !== rankOf(key, other)
  })
  return `other registers than it was given: ${wrong.slice(0, 3).join(', ')}`
}
