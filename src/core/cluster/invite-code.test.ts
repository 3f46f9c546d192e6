import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { machineId } from '../ids.ts'
import { type Invitation, decodeInvitation, encodeInvitation } from './invite-code.ts'

const hex16 = fc
  .uint8Array({ minLength: 16, maxLength: 16 })
  .map((bytes) => Buffer.from(bytes).toString('hex'))
const invitations: fc.Arbitrary<Invitation> = fc
  .record({
    inviter: hex16.map((hex) => machineId(hex)),
    secret: hex16,
    port: fc.integer({ min: 1, max: 65_535 }),
    addresses: fc.array(fc.ipV4(), { maxLength: 8 }),
  })
  .map((fields) => ({ ...fields }))
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

test('decodeInvitation() reads what encodeInvitation() wrote, however people type it', () => {
  fc.assert(
    fc.property(invitations, (invitation) => {
      const code = encodeInvitation(invitation)
      const typed = [
        code,
        code.toUpperCase(),
        code.replaceAll('-', ' '),
        `  ${code.replaceAll('-', '')}\n`,
        code.replaceAll('0', 'o').replaceAll('1', 'l'),
        code.replaceAll('1', 'I').replaceAll('v', 'u'),
      ]
      for (const text of typed)
        assert.deepEqual(decodeInvitation(text), { kind: 'read', invitation })
    }),
  )
})

test('decodeInvitation() notices every wrong character', () => {
  fc.assert(
    fc.property(invitations, fc.nat(), fc.nat(31), (invitation, at, other) => {
      const plain = encodeInvitation(invitation).replaceAll('-', '')
      const index = at % plain.length
      const wrong = alphabet.charAt(other)
      fc.pre(plain[index] !== wrong)
      const code = plain.slice(0, index) + wrong + plain.slice(index + 1)
      assert.equal(decodeInvitation(code).kind, 'not-a-code')
    }),
    { numRuns: 500 },
  )
})

test('decodeInvitation() notices two neighbours that were swapped', () => {
  fc.assert(
    fc.property(invitations, fc.nat(), (invitation, at) => {
      const plain = encodeInvitation(invitation).replaceAll('-', '')
      const index = at % (plain.length - 1)
      fc.pre(plain[index] !== plain[index + 1])
      const code = plain.slice(0, index) + plain[index + 1] + plain[index] + plain.slice(index + 2)
      assert.equal(decodeInvitation(code).kind, 'not-a-code')
    }),
  )
})

test('decodeInvitation() says so when a code is cut off anywhere', () => {
  const code = encodeInvitation({
    inviter: machineId('ab'.repeat(16)),
    secret: 'cd'.repeat(16),
    port: 28_744,
    addresses: ['10.0.0.1', '192.168.1.7'],
  })
  for (let length = 0; length < code.length; length++) {
    const parsed = decodeInvitation(code.slice(0, length))
    if (code.slice(0, length).replaceAll('-', '') === code.replaceAll('-', '')) continue
    assert.equal(parsed.kind, 'not-a-code', `cut at ${length}`)
    assert.ok(parsed.kind === 'not-a-code' && parsed.reason.length > 10)
  }
})

test('decodeInvitation() reads anything at all without throwing', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.string({ unit: fc.constantFrom(...alphabet.split('')), maxLength: 200 }),
      ),
      (text) => {
        assert.equal(decodeInvitation(text).kind, 'not-a-code')
      },
    ),
  )
})
