import assert from 'node:assert/strict'
import { test } from 'node:test'
import packet, { type Answer } from 'dns-packet'
import * as fc from 'fast-check'
import { decode, encodeAnnouncement, encodeQuery, serviceName } from './service-record.ts'

const about = { id: 'ab'.repeat(16), name: 'studio', version: '1.0.0', port: 28_744 }

test('decode() reads our own announcement, and a query as one', () => {
  assert.deepEqual(decode(encodeQuery()), { kind: 'query' })
  assert.deepEqual(decode(encodeAnnouncement(about)), {
    kind: 'sightings',
    sightings: [{ machine: about.id, name: 'studio', version: '1.0.0', port: 28_744 }],
  })
})

test('decode() sees nobody in a goodbye, nor in what other services say', () => {
  assert.equal(decode(encodeAnnouncement(about, { goodbye: true })).kind, 'nothing')
  const other = packet.encode({
    type: 'query',
    questions: [{ name: '_ipp._tcp.local', type: 'PTR' }],
  })
  assert.equal(decode(other).kind, 'nothing')
})

test('decode() survives every packet', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
      assert.ok(['query', 'sightings', 'nothing'].includes(decode(Buffer.from(bytes)).kind))
    }),
    { numRuns: 1000 },
  )
})

test('decode() survives every change of an honest packet, and every cut', () => {
  const honest = encodeAnnouncement(about)
  fc.assert(
    fc.property(
      fc.nat(honest.length - 1),
      fc.nat(255),
      fc.nat(honest.length),
      (at, value, length) => {
        const spoilt = Buffer.from(honest)
        spoilt[at] = value
        const heard = decode(spoilt.subarray(0, length))
        if (heard.kind !== 'sightings') return
        for (const { machine, name, port, version } of heard.sightings) {
          assert.match(machine, /^[a-z0-9][a-z0-9._-]{0,127}$/)
          assert.match(name, /^[\w.-]{1,128}$/)
          assert.ok(port >= 1 && port <= 65_535 && version.length <= 32)
        }
      },
    ),
    { numRuns: 2000 },
  )
})

test('decode() takes no name that could break a terminal or a path', () => {
  const heard = decode(encodeAnnouncement({ ...about, name: '\u001B[31m../../etc $(rm)' }))
  assert.equal(heard.kind === 'sightings' ? heard.sightings[0]?.name : '', '31m....etcrm')
})

test('decode() reads at most so many of ten thousand fake records', () => {
  const answers: Answer[] = []
  for (let index = 0; index < 10_000; index++) {
    const name = `x${index}.${serviceName}`
    const data = { port: 1, target: 'x.local', priority: 0, weight: 0 }
    answers.push({ name, type: 'SRV', ttl: 1, data })
    answers.push({ name, type: 'TXT', ttl: 1, data: [`id=x${index}`] })
  }
  const startedMs = performance.now()
  const heard = decode(packet.encode({ type: 'response', answers }))
  assert.ok(heard.kind !== 'sightings' || heard.sightings.length <= 64)
  assert.ok(performance.now() - startedMs < 5000)
})
