import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { planted } from '../core/planted.ts'
import { huntPlanted } from './hunt.ts'
import { plantedBugs, withPlanted } from './plant.ts'
import { runJobs, runSeeds } from './pool.ts'
import { Random } from './random.ts'
import { runSeed } from './run-seed.ts'
import { scenarioOf } from './scenario.ts'
import { Schedule, StormError } from './schedule.ts'
import { summarise } from './summary.ts'
import { Verdict } from './verdict.ts'

test('runSeed() tells the same story each time, and another one for another seed', () => {
  const told: string[] = []
  const once = runSeed(7, { machines: 3, print: (line) => void told.push(line) })
  const again: string[] = []
  const twice = runSeed(7, { machines: 3, print: (line) => void again.push(line) })
  assert.deepEqual(told, again)
  assert.equal(once.hash, twice.hash)
  assert.ok(told.length > 100)
  assert.notEqual(runSeed(8, { machines: 3 }).hash, once.hash)
})

test('runSeed() says what broke, and the bug is gone afterwards', () => {
  const broken = runSeed(4, { machines: 2, plant: 'volatileEpoch' })
  assert.ok(broken.violations.some(({ invariant }) => invariant === 'S2'))
  assert.deepEqual(runSeed(4, { machines: 2 }).violations, [])
})

test('runSeeds() gives the same from threads as from one', async () => {
  const order = { from: 3, count: 2, options: { machines: 2 } }
  const apart = await runSeeds({ ...order, threads: 2 })
  const alone = await runSeeds({ ...order, threads: 1 })
  assert.deepEqual(apart, alone)
})

test('runSeeds() hands out no more seeds after a violation when asked', async () => {
  const options = { machines: 2, plant: 'volatileEpoch' } as const
  const results = await runSeeds({
    from: 1,
    count: 50,
    options,
    stopsAtViolation: true,
    threads: 1,
  })
  assert.equal(results.length, 1)
})

test('runJobs() does nothing when there is nothing to do', async () => {
  assert.deepEqual(await runJobs({ next: () => null, options: {}, threads: 2 }), [])
})

test('huntPlanted() names the seed that catches a bug', async () => {
  const [found] = await huntPlanted({
    bugs: ['volatileEpoch'],
    from: 4,
    seedsMax: 3,
    stopsAtFirst: true,
    threads: 1,
  })
  assert.equal(found?.seed, 4)
  assert.equal(found.isCleanWithout, true)
  assert.match(found.text, /not on its disk/)
})

test('every planted bug is off, and has its invariant', () => {
  assert.deepEqual(Object.keys(plantedBugs).sort(), Object.keys(planted).sort())
  assert.ok(Object.values(planted).every((isOn) => isOn === false))
})

test('withPlanted() takes the bug out again whatever happens', () => {
  const fails = (): void => {
    assert.equal(planted.ghostKept, true)
    throw new Error('on purpose')
  }
  assert.throws(() => withPlanted('ghostKept', fails), /on purpose/)
  assert.equal(planted.ghostKept, false)
})

test('only the simulator can turn a planted bug on', () => {
  const source = join(import.meta.dirname, '..')
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  const users = files.filter(
    (name) =>
      name.endsWith('.ts') &&
      /from '[./]*(simulator\/)?plant\.ts'/.test(readFileSync(join(source, name), 'utf8')),
  )
  const outside = users.filter(
    (name) => !name.startsWith('simulator') && !name.startsWith('cli/simulate'),
  )
  assert.deepEqual(outside, [])
})

test('Schedule runs what is due in time, and equal times in the order they were asked for', () => {
  const schedule = new Schedule()
  const seen: string[] = []
  schedule.after(5, () => seen.push('c'))
  schedule.after(1, () => {
    seen.push('a')
    schedule.after(4, () => seen.push('d'))
  })
  schedule.after(1, () => seen.push('b'))
  schedule.after(99, () => seen.push('never'))
  schedule.runUntil(10)
  assert.deepEqual(seen, ['a', 'b', 'c', 'd'])
  assert.equal(schedule.nowMs, 10)
})

test('Schedule ends a run that feeds itself', () => {
  const schedule = new Schedule()
  const again = (): void => schedule.after(0, again)
  again()
  assert.throws(() => schedule.runUntil(1000), StormError)
})

test('Random draws evenly, and its streams know nothing of each other', () => {
  const random = new Random(1, 'test')
  const draws = Array.from({ length: 6000 }, () => random.whole(1, 6))
  for (let face = 1; face <= 6; face++) {
    const count = draws.filter((draw) => draw === face).length
    assert.ok(count > 850 && count < 1150, `${face} came ${count} times`)
  }
  const one = new Random(1, 'world')
  const first = one.stream('a').hex(8)
  one.fraction()
  assert.equal(one.stream('a').hex(8), first)
  assert.notEqual(one.stream('b').hex(8), first)
})

test('scenarioOf() covers every size of cluster', () => {
  const sizes = new Set(Array.from({ length: 200 }, (_, seed) => scenarioOf(seed).machines.length))
  assert.equal(sizes.size, 16)
})

test('Verdict keeps a few violations of each invariant, so that none hides another', () => {
  const verdict = new Verdict(
    () => 1,
    () => undefined,
  )
  for (let index = 0; index < 100; index++) verdict.check('S1', false, () => 'again')
  verdict.check('S2', false, () => 'once')
  assert.equal(verdict.violations.length, 6)
  assert.equal(verdict.checks.get('S1'), 100)
})

test('summarise() gives the command that shows a violation again', () => {
  const options = { machines: 2, plant: 'volatileEpoch' } as const
  const { violations, faultsTotal } = summarise([runSeed(4, options)], options)
  assert.equal(
    violations[0]?.replay,
    'bushel simulate --seed 4 --machines 2 --plant volatileEpoch --trace',
  )
  assert.ok(faultsTotal >= 10)
})
