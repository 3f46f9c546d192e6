// The test that every parser has to stand: a capture that breaks off anywhere, or garbage, must neither
// crash it nor make it claim something that the whole capture does not say.
import assert from 'node:assert/strict'
import * as fc from 'fast-check'

/** Everything that a value asserts, as "path=value" lines. Unknown facts and empty lists assert nothing. */
export function claimsOf(value: unknown, path = ''): readonly string[] {
  if (value === null || value === undefined) return []
  if (value instanceof Map)
    return [...value].flatMap(([key, one]) => claimsOf(one, `${path}.${String(key)}`))
  if (Array.isArray(value)) return value.flatMap((one, index) => claimsOf(one, `${path}[${index}]`))
  if (typeof value !== 'object') return [`${path}=${JSON.stringify(value)}`]
  const object = value as Record<string, unknown>
  if (object['known'] === false) return []
  if (object['known'] === true) return claimsOf(object['value'], path)
  return Object.entries(object)
    .filter(([key]) => !silentKeys.has(key))
    .flatMap(([key, one]) => claimsOf(one, `${path}.${key}`))
}

/** These say how much was printed; they are smaller in a cut capture and claim nothing about a machine. */
const silentKeys = new Set(['complete', 'gidsComplete', 'unfamiliar'])

export function assertCutsClaimNothingNew(text: string, parse: (text: string) => unknown): void {
  const whole = new Set(claimsOf(parse(text)))
  assert.ok(whole.size > 0, 'the whole capture must say something, or this test shows nothing')
  fc.assert(
    fc.property(fc.nat({ max: text.length }), (cut) => {
      for (const claim of claimsOf(parse(text.slice(0, cut))))
        assert.ok(whole.has(claim), `cut at ${cut}, it claims ${claim}`)
    }),
    { numRuns: 150 },
  )
}

/** Any byte, as a program without manners would print it. */
const bytes = (lengthMax: number) =>
  fc
    .array(fc.nat({ max: 255 }), { maxLength: lengthMax })
    .map((codes) => String.fromCharCode(...codes))

export function assertGarbageIsSurvived(text: string, parse: (text: string) => unknown): void {
  const noise = fc.oneof(
    bytes(40),
    fc.constantFrom('\n', '\t', '\0', ':', '{', '}', '<', '[N/A]', '-1', '99999999999999999999'),
  )
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat({ max: text.length }), fc.nat({ max: 60 }), noise), {
        maxLength: 6,
      }),
      (edits) => {
        let damaged = text
        for (const [at, length, inserted] of edits)
          damaged = damaged.slice(0, at) + inserted + damaged.slice(at + length)
        parse(damaged)
      },
    ),
    { numRuns: 150 },
  )
  fc.assert(
    fc.property(bytes(400), (garbage) => {
      assert.deepEqual(claimsOf(parse(garbage)), [], 'garbage says nothing about a machine')
    }),
    { numRuns: 100 },
  )
}
