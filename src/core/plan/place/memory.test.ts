import assert from 'node:assert/strict'
import { test } from 'node:test'
import { model } from '../../../../test/planner-requests.ts'
import { GB } from '../../units.ts'
import { modelWork, storedBytes } from '../model/work.ts'
import { longestContext, memorySums, rankMemoryByContext, rankMemoryBytes } from './memory.ts'

const workOf = (name: string) => {
  const { shape, format } = model(name)
  return modelWork(shape, format)
}

test('storedBytes() weighs models as their files on disk do', () => {
  // Sizes of the published files as exo's model cards give them (resources/inference_model_cards).
  const files: Readonly<Record<string, number>> = {
    'deepseek-v3.2': 378_086_226_621,
    'glm-4.7': 198_556_925_568,
    'minimax-m2': 128_666_664_960,
    'minimax-m2:q8': 242_986_745_856,
    'qwen3.5-397b-a17b': 223_860_768_352,
    'qwen3.5-35b-a3b:q8': 37_721_130_592,
  }
  for (const [name, bytes] of Object.entries(files)) {
    const stored = storedBytes(workOf(name))
    assert.ok(Math.abs(stored / bytes - 1) < 0.03, `${name}: ${stored} against ${bytes}`)
  }
})

test('rankMemoryBytes() keeps cache for every request at its full length', () => {
  const work = workOf('llama-3.3-70b')
  const at = (contextTokens: number, concurrency: number): number =>
    rankMemoryBytes(memorySums(work, { contextTokens, concurrency }), {
      from: 0,
      to: 80,
      share: 1,
      sharing: 'alone',
    })
  const extra = at(8192, 4) - at(8192, 1)
  assert.ok(Math.abs(extra / (3 * 8192 * 327_680) - 1.03) < 1e-6)
})

test('rankMemoryBytes() keeps no more than its window for layers that have one', () => {
  const work = workOf('gpt-oss-120b')
  const at = (contextTokens: number): number =>
    rankMemoryBytes(memorySums(work, { contextTokens, concurrency: 1 }), {
      from: 0,
      to: 36,
      share: 1,
      sharing: 'alone',
    })
  // Half of the layers see 128 tokens and no more.
  const perToken = (at(131_072) - at(65_536)) / 65_536
  assert.ok(Math.abs(perToken / (36_864 * 1.03) - 1) < 0.01, String(perToken))
})

test('rankMemoryBytes() replicates a latent cache over tensor ranks and cuts a grouped one', () => {
  const share = (name: string, layers: number): number => {
    const work = workOf(name)
    const cache = (part: number): number => {
      const of = (contextTokens: number): number =>
        rankMemoryBytes(memorySums(work, { contextTokens, concurrency: 8 }), {
          from: 0,
          to: layers,
          share: part,
          sharing: 'tensor',
        })
      return of(32_768) - of(16_384)
    }
    return cache(0.25) / cache(1)
  }
  assert.ok(Math.abs(share('llama-3.3-70b', 80) - 0.25) < 0.01)
  assert.ok(share('deepseek-v3', 61) > 0.99)
})

test('rankMemoryBytes() counts a tied embedding once on one stage and on both ends of several', () => {
  const work = workOf('llama-3.2-3b')
  const sums = memorySums(work, { contextTokens: 256, concurrency: 1 })
  const whole = rankMemoryBytes(sums, { from: 0, to: 28, share: 1, sharing: 'alone' })
  const parts =
    rankMemoryBytes(sums, { from: 0, to: 14, share: 1, sharing: 'alone' }) +
    rankMemoryBytes(sums, { from: 14, to: 28, share: 1, sharing: 'alone' })
  const runtime = rankMemoryBytes(sums, { from: 14, to: 14, share: 1, sharing: 'alone' })
  assert.ok(Math.abs(parts - whole - runtime - work.embeddingBytes * 1.03) < 1000)
})

test('rankMemoryByContext() agrees with rankMemoryBytes() at every context', () => {
  for (const name of ['deepseek-v3', 'gpt-oss-120b', 'qwen3.5-27b', 'llama-3.3-70b']) {
    const work = workOf(name)
    const to = work.layers.length - 2
    for (const sharing of ['alone', 'tensor', 'expert'] as const) {
      const options = { from: 3, to, share: 0.5, sharing, concurrency: 3 }
      const quick = rankMemoryByContext(
        memorySums(work, { contextTokens: 0, concurrency: 0 }),
        options,
      )
      for (const contextTokens of [1, 300, 5000, 100_000]) {
        const exact = rankMemoryBytes(memorySums(work, { contextTokens, concurrency: 3 }), options)
        assert.ok(
          Math.abs(quick(contextTokens) / exact - 1) < 1e-9,
          `${name} ${sharing} ${contextTokens}`,
        )
      }
    }
  }
})

test('longestContext() finds the last context that fits', () => {
  assert.equal(
    longestContext((tokens) => tokens <= 10_000, 131_072),
    9984,
  )
  assert.equal(
    longestContext(() => true, 4096),
    4096,
  )
  assert.equal(
    longestContext(() => false, 4096),
    0,
  )
  assert.equal(
    longestContext((tokens) => tokens <= 100, 4096),
    100,
  )
  assert.ok(longestContext((tokens) => tokens * 70_272 < 100 * GB, Infinity) > 1_400_000)
})
