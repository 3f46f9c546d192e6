// Redaction: nothing that names anyone is left, and what belonged together still does.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { subnetOf } from '../machine-facts/ipv4.ts'
import { switchUidOfNodeGuid } from '../machine-facts/thunderbolt.ts'
import { createRedactor } from './redact.ts'

const redactor = (names: readonly string[] = [], key = 'key') =>
  createRedactor({ digest: (text) => createHmac('sha256', key).update(text).digest('hex'), names })
const once = (text: string, names: readonly string[] = []): string => redactor(names).text(text)

test('createRedactor() takes out names, and leaves products alone', () => {
  const text = once(
    '/Users/bob on Bobs-MacBook-Pro: "Bob’s MacBook Pro" beside a Mac Studio and a MacBook Pro of Bob',
    ['bob', 'Bobs-MacBook-Pro', 'Bob’s MacBook Pro'],
  )
  assert.ok(!/bob/i.test(text), text)
  assert.match(text, /beside a Mac Studio and a MacBook Pro of name-/)
})

test('createRedactor() does not take ordinary words for names', () => {
  const text = 'Mac Studio node python root Thunderbolt 1'
  assert.equal(once(text, ['studio', 'node', 'root', 'Thunderbolt']), text)
})

test('createRedactor() takes out serials and identities of the hardware page', () => {
  const page =
    '"platform_UUID" : "12345678-ABCD-4321-9876-0123456789AB",\n"serial_number" : "C02XYZ1234AB",\n"machine_model" : "Mac16,5"'
  const text = once(page)
  assert.ok(!text.includes('C02XYZ1234AB') && !text.includes('12345678-ABCD'))
  assert.match(text, /"machine_model" : "Mac16,5"/)
})

test('createRedactor() keeps the last octet, the class and every shared bit of IPv4 addresses', () => {
  const octet = fc.integer({ min: 0, max: 255 })
  const address = fc.oneof(
    fc.tuple(fc.constant('192.168'), octet, octet).map(([a, b, c]) => `${a}.${b}.${c}`),
    fc.tuple(fc.constant('10'), octet, octet, octet).map((parts) => parts.join('.')),
    fc.tuple(fc.constant('169.254'), octet, octet).map((parts) => parts.join('.')),
    fc.tuple(fc.constant('172.20'), octet, octet).map((parts) => parts.join('.')),
  )
  const one = redactor()
  fc.assert(
    fc.property(address, address, fc.integer({ min: 8, max: 32 }), (a, b, prefixLength) => {
      const [x, y] = [one.text(a), one.text(b)]
      assert.notEqual(x, a)
      assert.equal(x.split('.')[3], a.split('.')[3])
      assert.equal(x.split('.')[0], a.split('.')[0])
      const same = (p: string, q: string): boolean =>
        subnetOf({ address: p, prefixLength }) === subnetOf({ address: q, prefixLength })
      assert.equal(same(x, y), same(a, b), `${a} ${b} /${prefixLength} became ${x} ${y}`)
      assert.equal(one.text(a), x, 'the same address has the same stand-in')
    }),
  )
})

test('createRedactor() leaves masks, loopback, versions and times as they are', () => {
  const text =
    'netmask 255.255.255.252 lo 127.0.0.1 any 0.0.0.0 macOS 26.4.1 driver 580.159.04 boot 11881.140.96.701.1 at 13:20:22 fe80::1%lo0 ::1 mtu 1500'
  assert.equal(once(text), text)
})

test('createRedactor() moves public addresses out of sight', () => {
  const text = once('gateway 8.8.4.4 and 2a00:1450:4001:81b::200e')
  assert.match(text, /^gateway 198\.\d+\.\d+\.4 and 2001:db8::/)
})

test('createRedactor() keeps a GID of a hardware address the GID of its stand-in', () => {
  const text = once('ether 36:11:22:33:44:40\nGID[  0]: fe80::3411:22ff:fe33:4440\n')
  const [, ether = ''] = /ether (\S+)/.exec(text) ?? []
  const [, gid = ''] = /GID\[ {2}0\]: (\S+)/.exec(text) ?? []
  assert.notEqual(ether, '36:11:22:33:44:40')
  const bytes = ether.split(':').map((byte) => Number.parseInt(byte, 16))
  const eui = [(bytes[0] ?? 0) ^ 2, bytes[1], bytes[2], 0xff, 0xfe, bytes[3], bytes[4], bytes[5]]
    .map((byte) => (byte ?? 0).toString(16).padStart(2, '0'))
    .join('')
  const groups = gid
    .replace('fe80::', '')
    .split(':')
    .map((group) => group.padStart(4, '0'))
    .join('')
  assert.equal(groups, eui)
})

test('createRedactor() keeps a device the device of its port', () => {
  const text = once(
    '"switch_uid_key" : "0x05AC1111222233D2"\nnode_guid:\t\t\td233:2222:1111:ac05\n    rdma_en3        \td23322221111ac05\n',
  )
  const [, uid = ''] = /0x([0-9A-F]{16})/.exec(text) ?? []
  const [, guid = ''] = /node_guid:\s+(\S+)/.exec(text) ?? []
  const [, bare = ''] = /rdma_en3\s+(\S+)/.exec(text) ?? []
  assert.notEqual(uid, '05AC1111222233D2')
  assert.equal(switchUidOfNodeGuid(guid), uid)
  assert.equal(switchUidOfNodeGuid(bare), uid)
})

test('createRedactor() gives the same stand-ins on two machines that share a word, and others otherwise', () => {
  const secret = 'E44FA7FC-0682-46B5-892A-6A09C908C171 02:11:22:33:44:55'
  assert.equal(redactor([], 'word').text(secret), redactor([], 'word').text(secret))
  assert.notEqual(redactor([], 'word').text(secret), redactor([], 'other').text(secret))
})

test('createRedactor() knows everything it has taken out, and finds all of it in any text', () => {
  const hexDigits = (count: number) =>
    fc
      .array(fc.constantFrom(...'0123456789abcdef'.split('')), {
        minLength: count,
        maxLength: count,
      })
      .map((digits) => digits.join(''))
  const mac = fc
    .array(hexDigits(2), { minLength: 6, maxLength: 6 })
    .map((parts) => parts.join(':'))
    .filter((one) => !/^(00:)+00$|^(ff:)+ff$/.test(one))
  const uuid = fc
    .tuple(hexDigits(8), hexDigits(4), hexDigits(4), hexDigits(4), hexDigits(12))
    .map((parts) => parts.join('-'))
  const name = fc
    .array(fc.constantFrom(...'qxzjkvw'.split('')), { minLength: 4, maxLength: 9 })
    .map((letters) => letters.join(''))
  fc.assert(
    fc.property(
      mac,
      uuid,
      name,
      fc.constantFrom(' ', '\n', '"', ',', '\t', '(', '='),
      (ether, id, person, gap) => {
        const one = redactor([person])
        const text = one.text(['x', ether, id, person, `/Users/${person}/bin`].join(gap))
        for (const secret of [ether, id, person]) {
          assert.ok(!text.includes(secret), `${secret} is left in ${text}`)
          assert.ok(one.removed().has(secret))
        }
      },
    ),
  )
})
