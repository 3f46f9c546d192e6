// Measured links for tests: a healthy one, but for what a test says.
import type { LinkMeasure } from '../../src/core/links/link-fact.ts'

export function aMeasure(changes: Partial<LinkMeasure> = {}): LinkMeasure {
  return {
    class: 'ethernet',
    nominalGbps: 10,
    expectedGbps: 9,
    gbps: { slower: 9.2, forward: 9.3, backward: 9.2 },
    roundTripMicros: { median: 300, p99: 500, samples: 30 },
    slow: false,
    likelyCause: null,
    next: null,
    transport: { gbps: 12, roundTripMicros: 120 },
    error: null,
    ageMs: 5000,
    ...changes,
  }
}
