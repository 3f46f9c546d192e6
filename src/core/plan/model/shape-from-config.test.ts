import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tables } from '../../../../test/planner-rows.ts'
import { shapeFromConfig } from './shape-from-config.ts'
import { type ModelShape, dividesAmong } from './shape.ts'

const cardConfig = (id: string): Readonly<Record<string, unknown>> => {
  const card = tables.cards.find((entry) => entry.id === id)
  assert.ok(card !== undefined)
  return card.config
}

function shapeOf(config: Readonly<Record<string, unknown>>): ModelShape {
  const outcome = shapeFromConfig(config, tables.architectures)
  if (outcome.kind === 'refused') assert.fail(outcome.message)
  return outcome.shape
}

test('shapeFromConfig() gives windows to the layers that have them', () => {
  const gemma = shapeOf(cardConfig('gemma-3-27b'))
  const windows = gemma.layers.map((kind) => {
    const attention = gemma.kinds[kind]?.attention
    return attention?.kind === 'grouped' ? attention.windowTokens : undefined
  })
  assert.deepEqual(windows.slice(0, 7), [1024, 1024, 1024, 1024, 1024, null, 1024])
  const oss = shapeOf(cardConfig('gpt-oss-20b'))
  assert.equal(oss.kinds.length, 2)
})

test('shapeFromConfig() believes layer_types before a fixed pattern', () => {
  const shape = shapeOf({
    ...cardConfig('gpt-oss-20b'),
    layer_types: Array.from({ length: 24 }, () => 'full_attention'),
  })
  assert.equal(shape.kinds.length, 1)
})

test('shapeFromConfig() keeps the dense layers at the start of a mixture apart', () => {
  const shape = shapeOf(cardConfig('deepseek-v3'))
  assert.deepEqual(shape.layers.slice(0, 5), [0, 0, 0, 1, 1])
  assert.equal(shape.kinds[0]?.experts, null)
  assert.equal(shape.kinds[1]?.experts?.count, 256)
})

test('shapeFromConfig() makes three of four layers of a hybrid recurrent', () => {
  const shape = shapeOf(cardConfig('qwen3.5-27b'))
  const kinds = shape.layers.map((kind) => shape.kinds[kind]?.attention.kind)
  assert.equal(kinds.filter((kind) => kind === 'grouped').length, 16)
  assert.equal(kinds.filter((kind) => kind === 'recurrent').length, 48)
})

test('shapeFromConfig() reads text_config of a model that also sees', () => {
  const { model_type: _, ...text } = cardConfig('qwen3.5-27b')
  const shape = shapeOf({
    model_type: 'qwen3_5',
    text_config: text,
    vision_config: { hidden_size: 1152 },
  })
  assert.equal(shape.hidden, 5120)
})

test('shapeFromConfig() refuses more active experts than there are', () => {
  const outcome = shapeFromConfig(
    { ...cardConfig('mixtral-8x7b'), num_experts_per_tok: 9 },
    tables.architectures,
  )
  assert.ok(
    outcome.kind === 'refused' &&
      /num_experts_per_tok \(9\) is more than num_local_experts \(8\)/.test(outcome.message),
  )
})

test('shapeFromConfig() counts the bits of each quantisation', () => {
  const bits = (quantization: unknown): number => {
    const outcome = shapeFromConfig(
      { ...cardConfig('qwen3-8b'), quantization },
      tables.architectures,
    )
    return outcome.kind === 'understood' ? outcome.format.bitsPerWeight : NaN
  }
  assert.equal(bits({ bits: 4, group_size: 64 }), 4.5)
  assert.equal(bits({ bits: 8, group_size: 32 }), 9)
  assert.equal(bits({ bits: 4, group_size: 32, mode: 'mxfp4' }), 4.25)
  assert.equal(bits(undefined), 16)
})

test('dividesAmong() says which size stands in the way', () => {
  assert.deepEqual(dividesAmong(shapeOf(cardConfig('smollm2-135m')), 3), { ok: true })
  assert.deepEqual(dividesAmong(shapeOf(cardConfig('smollm2-135m')), 2), {
    ok: false,
    why: '9 attention heads do not divide by 2',
  })
  assert.deepEqual(dividesAmong(shapeOf(cardConfig('qwen3-235b-a22b')), 8), {
    ok: false,
    why: '4 KV heads do not divide by 8',
  })
})
