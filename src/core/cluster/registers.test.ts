import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { type MachineId, machineId } from '../ids.ts'
import {
  type Register,
  type Registers,
  mergeRegisters,
  registersDigest,
  writeRegister,
} from './registers.ts'

const keys = ['deployment/x', 'deployment/y', 'roster/m/first', 'key/k', 'setting/s']
const machines = [machineId('m1'), machineId('m2'), machineId('m3')] as const

/** What really happens: a version is written once, so equal versions carry equal values. */
const entry: fc.Arbitrary<readonly [string, Register]> = fc
  .record({
    key: fc.constantFrom(...keys),
    counter: fc.integer({ min: 1, max: 4 }),
    machine: fc.constantFrom(...machines),
    boot: fc.constantFrom('b1', 'b2'),
  })
  .map(({ key, counter, machine, boot }) => {
    const text = `${key} ${counter} ${machine} ${boot}`
    const isTombstone = (counter + text.length + boot.charCodeAt(1)) % 3 === 0
    return [key, { version: { counter, machine, boot }, value: isTombstone ? undefined : text }]
  })
const entries = fc.array(entry, { maxLength: 12 })

function mergeAll(parts: readonly (readonly (readonly [string, Register])[])[]): Registers {
  return parts.reduce<Registers>((known, part) => mergeRegisters(known, part).registers, new Map())
}

function shown(registers: Registers): readonly string[] {
  return [...registers].map((pair) => JSON.stringify(pair)).sort()
}

test('mergeRegisters() comes to the same state in any order, however often', () => {
  fc.assert(
    fc.property(
      fc.array(entries, { maxLength: 5 }),
      fc.infiniteStream(fc.nat()),
      (parts, picks) => {
        const mixed = [...parts, ...parts]
          .map((part) => ({ part: [...part].reverse(), at: picks.next().value }))
          .sort((one, other) => one.at - other.at)
          .map(({ part }) => part)
        assert.deepEqual(shown(mergeAll(mixed)), shown(mergeAll(parts)))
      },
    ),
  )
})

test('mergeRegisters() says which keys changed, and gives the same map back when none did', () => {
  fc.assert(
    fc.property(entries, entries, (mine, theirs) => {
      const known = mergeAll([mine])
      const { registers, changedKeys } = mergeRegisters(known, theirs)
      if (changedKeys.length === 0) assert.equal(registers, known)
      for (const [key, register] of registers)
        assert.equal(known.get(key) !== register, changedKeys.includes(key))
      assert.equal(mergeRegisters(registers, theirs).registers, registers)
    }),
  )
})

test('mergeRegisters() never takes a key away: what is missing says nothing', () => {
  fc.assert(
    fc.property(entries, entries, (mine, theirs) => {
      const known = mergeAll([mine])
      const { registers } = mergeRegisters(known, theirs)
      for (const key of known.keys()) assert.ok(registers.has(key))
    }),
  )
})

test('a removal from the roster or of a key wins for ever, whatever is written above it', () => {
  fc.assert(
    fc.property(entries, entries, (before, after) => {
      const key = 'roster/m/first'
      const gone = { version: { counter: 1, machine: machines[0], boot: 'b' }, value: undefined }
      const registers = mergeAll([before, [[key, gone]], after])
      assert.equal(registers.get(key)?.value, undefined)
      assert.ok(registers.has(key))
    }),
  )
})

test('writeRegister() wins over everything its writer had seen', () => {
  fc.assert(
    fc.property(entries, fc.constantFrom('deployment/x', 'setting/s'), (seen, key) => {
      const known = mergeAll([seen])
      const by = { machine: machines[1], boot: 'b9' }
      const written = writeRegister(known, { key, value: 'new', by })
      assert.equal(mergeAll([[...written], seen]).get(key)?.value, 'new')
      assert.equal(mergeAll([seen, [...written]]).get(key)?.value, 'new')
    }),
  )
})

test('writeRegister() brings back no machine and no key that was removed, and changes nothing then', () => {
  const by = { machine: machines[0], boot: 'b1' }
  for (const key of ['roster/m/first', 'key/k']) {
    const removed = writeRegister(new Map(), { key, value: undefined, by })
    assert.equal(writeRegister(removed, { key, value: 'again', by }), removed)
  }
  const unloaded = writeRegister(new Map(), { key: 'deployment/x', value: undefined, by })
  const loaded = writeRegister(unloaded, { key: 'deployment/x', value: 'again', by })
  assert.equal(loaded.get('deployment/x')?.value, 'again')
})

test('two writers at the same moment agree on the winner', () => {
  const write = (machine: MachineId): Registers =>
    writeRegister(new Map(), { key: 'setting/s', value: machine, by: { machine, boot: 'b' } })
  const [one, other] = [write(machines[0]), write(machines[1])]
  const forth = mergeRegisters(one, other).registers
  const back = mergeRegisters(other, one).registers
  assert.deepEqual(forth, back)
})

test('registersDigest() is equal exactly for equal registers', () => {
  fc.assert(
    fc.property(entries, entries, (one, other) => {
      const [left, right] = [mergeAll([one]), mergeAll([other])]
      const isSame = JSON.stringify(shown(left)) === JSON.stringify(shown(right))
      assert.equal(registersDigest(left) === registersDigest(right), isSame)
    }),
  )
})
