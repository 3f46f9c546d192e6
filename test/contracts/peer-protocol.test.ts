// A cluster is updated one machine after the other: what a peer of an older protocol says is understood to the
// last field. The lines are messages of that version as they were sent; they are added to, never changed.
import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { test } from 'node:test'
import { parseClusterMessage, parseHeartbeat } from '../../src/wire/cluster-messages.ts'
import { generationMessage } from '../../src/wire/generation-messages.ts'
import { peerProtocol, peerProtocolOldest } from '../../src/wire/peer-frames.ts'

type Line = Readonly<Record<string, unknown>> & { readonly kind: string }

const folder = new URL('frames/', import.meta.url)

function linesOf(protocol: number): readonly Line[] {
  const text = readFileSync(new URL(`peer-protocol-${protocol}.jsonl`, folder), 'utf8')
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
}

function understood(line: Line): unknown {
  if (line.kind === 'beat') {
    const beat = parseHeartbeat(line['beat'])
    return beat === null ? null : { kind: 'beat', beat }
  }
  if (!/^(attempt|rank)-/.test(line.kind)) return parseClusterMessage(line)
  const parsed = generationMessage.safeParse(line)
  return parsed.success ? parsed.data : null
}

/** `wanted` may say less than `found`: newer fields have their defaults. */
function assertHolds(found: unknown, wanted: unknown, about: string): void {
  if (wanted === null || typeof wanted !== 'object') return assert.equal(found, wanted, about)
  assert.ok(typeof found === 'object' && found !== null, about)
  for (const [key, value] of Object.entries(wanted))
    assertHolds((found as Readonly<Record<string, unknown>>)[key], value, `${about}.${key}`)
}

for (let protocol = peerProtocolOldest; protocol <= peerProtocol; protocol++) {
  test(`every message of peer protocol ${protocol} is understood, and nothing of it is lost`, () => {
    const lines = linesOf(protocol)
    assert.ok(new Set(lines.map(({ kind }) => kind)).size >= 22)
    for (const line of lines) assertHolds(understood(line), line, line.kind)
  })

  test(`messages of peer protocol ${protocol} that say more than is known are understood, too`, () => {
    for (const line of linesOf(protocol))
      assert.notEqual(
        understood({ ...line, fromTheFuture: { of: ['protocols'] } }),
        null,
        line.kind,
      )
  })
}

test('every protocol that is still spoken has its messages on file', () => {
  const files = new Set(readdirSync(folder))
  for (let protocol = peerProtocolOldest; protocol <= peerProtocol; protocol++)
    assert.ok(files.has(`peer-protocol-${protocol}.jsonl`))
})
