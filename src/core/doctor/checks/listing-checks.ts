// Check 22: what the tools say about the same thing agrees, and nothing in it is new to us.
import { findContradictions } from '../../machine-facts/consistency.ts'
import { type Check, pass } from '../finding.ts'
import { macs } from './subjects.ts'

export const listingsCheck: Check = {
  id: 'listings',
  number: 22,
  title: 'the listings agree and are understood',
  cites: ['kb#2104'],
  after: [],
  examine: (input) =>
    macs(input).flatMap((facts) => {
      const contradictions = findContradictions(facts)
      if (contradictions.length > 0)
        return contradictions.map((one) => ({
          machines: [facts.name],
          level: 'warn' as const,
          evidence: `${facts.name}: ${one.detail}`,
          next: 'Interfaces were renamed while we looked, or a cable is moving: run "bushel doctor" again.',
        }))
      if (facts.unfamiliar.length > 0)
        return [
          {
            machines: [facts.name],
            level: 'warn' as const,
            evidence: `${facts.name} prints keys that are new to Bushel: ${facts.unfamiliar.join(', ')}`,
            next: 'They are ignored. Please send them with "bushel selftest --bundle FILE".',
          },
        ]
      return [pass([facts.name], `the tools of ${facts.name} agree`)]
    }),
}
