// Seeds beyond the usual two hundred that once broke a promise. Each is run with every change: what it showed
// must not come back.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runSeeds } from '../../src/simulator/pool.ts'

const remembered: readonly { readonly seed: number; readonly showed: string }[] = [
  { seed: 575, showed: 'a daemon killed 14 times in a minute starts what is wanted each time' },
  { seed: 694, showed: 'a group was stopped because an old record called it reserved' },
  { seed: 779, showed: 'ranks that run were stopped with a re-formation that was never committed' },
  { seed: 809, showed: 'a version learned between two orders of one start mixed 1.0.0 and 1.1.0' },
  { seed: 1047, showed: 'a rank waited two minutes for answers that its group gave elsewhere' },
  { seed: 1324, showed: 'a machine that left unheard and was invited again is no ghost' },
  {
    seed: 1352,
    showed: 'when every machine has lost its state, whoever invites founds the cluster',
  },
  { seed: 1530, showed: 'a rank that began to load from a slow disk takes its own load time' },
  { seed: 1643, showed: 'a write that waited brought a removed machine back into the roster' },
  { seed: 1769, showed: 'a machine that left owes its farewell to its fellow members alone' },
  { seed: 1942, showed: 'what runs of a group that could not be re-formed was kept for ever' },
  { seed: 2425, showed: 'somebody founds a cluster only where nobody remembers one' },
  { seed: 2986, showed: 'a machine that had no port was asked again every second' },
  {
    seed: 3076,
    showed: 'a daemon that dies in the middle of a step says nothing more to its clients',
  },
  { seed: 4468, showed: 'orders that had waited for a full disk were all given at once' },
  { seed: 5051, showed: 'a group that had been whole was called late instead of broken' },
  { seed: 5357, showed: 'an order that was long on its way outlived the rank it spoke of' },
  { seed: 5402, showed: 'a rank that spins shows only when it is given work, however late' },
  { seed: 6812, showed: 'three machines taken out and let in again are no storm of terms' },
  { seed: 6870, showed: 'a re-formation that had just failed was tried once more' },
  { seed: 7474, showed: 'fifteen daemons that boot apart begin their terms a while later' },
  { seed: 7646, showed: 'an order that came after its attempt was called lost was worked on' },
  { seed: 7934, showed: 'a machine that remembers a cluster which everybody else lost is invited' },
]

test('seeds that once broke a promise keep it', async () => {
  for (const { seed, showed } of remembered) {
    const [result] = await runSeeds({ from: seed, count: 1, options: {}, threads: 1 })
    const told = result?.violations.map(({ invariant, text }) => `${invariant} ${text}`)
    assert.deepEqual(told, [], `seed ${seed}: ${showed}`)
  }
})
