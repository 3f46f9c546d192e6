// The simulator proves nothing unless it can fail: each bug that is planted on purpose falls to the promise it
// breaks, and the seed that shows it passes without the bug.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { huntPlanted } from '../../src/simulator/hunt.ts'
import { type PlantedBug, plantedBugs } from '../../src/simulator/plant.ts'

/** The seeds of seeds.test.ts. */
const seedsMax = 200

test('there are at least twelve planted bugs', () => {
  assert.ok(Object.keys(plantedBugs).length >= 12)
})

for (const [bug, { invariant, words }] of Object.entries(plantedBugs)) {
  test(`${invariant} catches ${bug}: ${words}`, async (context) => {
    const bugs = [bug as PlantedBug]
    const [found] = await huntPlanted({ bugs, seedsMax, stopsAtFirst: true })
    assert.ok(found?.seed != null, `${bug} was not caught in ${seedsMax} seeds`)
    context.diagnostic(`seed ${found.seed}: ${found.text}`)
    assert.ok(found.isCleanWithout, `seed ${found.seed} is broken without the bug, too`)
  })
}
