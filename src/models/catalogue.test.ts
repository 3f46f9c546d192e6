import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fixture, tables } from '../../test/planner-rows.ts'
import { shapeFromConfig } from '../core/plan/model/shape-from-config.ts'
import { type ModelShape, countParameters } from '../core/plan/model/shape.ts'
import { rowShapeFromModel } from '../core/plan/rows/row-shape-from-model.ts'
import { readShapes } from '../core/plan/rows/row-shape.ts'
import type { CatalogueCard } from '../wire/plan-data.ts'
import { findModel } from './catalogue.ts'

function shapeOf(card: CatalogueCard): ModelShape {
  const outcome = shapeFromConfig(card.config, tables.architectures)
  assert.equal(outcome.kind, 'understood', outcome.kind === 'refused' ? outcome.message : '')
  return outcome.kind === 'understood' ? outcome.shape : assert.fail()
}

test('every card’s computed parameters lie within 2% of the published count', () => {
  console.log(
    '\nmodel: computed, published, difference; active with and without embeddings, published',
  )
  for (const card of tables.cards) {
    const count = countParameters(shapeOf(card))
    const { totalBillion, activeBillion, besidesBillion = 0 } = card.published
    const total = count.total / 1e9 + besidesBillion
    const difference = total / totalBillion - 1
    // Makers count active parameters with the embedding, without it, or without both ends.
    const active = [
      count.active,
      count.active - count.embedding,
      count.active - count.embedding - count.head,
    ].map((value) => value / 1e9)
    console.log(
      `${card.id.padEnd(24)} ${total.toFixed(2).padStart(8)} ${totalBillion.toFixed(2).padStart(8)} ${(difference * 100).toFixed(2).padStart(6)}%  active ${active.map((value) => value.toFixed(2)).join(' / ')} (${activeBillion ?? 'not published'})`,
    )
    assert.ok(Math.abs(difference) <= 0.02, `${card.id}: ${total} B against ${totalBillion} B`)
    if (activeBillion === null) continue
    // A count given in whole billions may be half of one off.
    const allowed = Math.max(0.02 * activeBillion, Number.isInteger(activeBillion) ? 0.5 : 0)
    assert.ok(
      active.some((value) => Math.abs(value - activeBillion) <= allowed),
      `${card.id}: active ${active.join(', ')} against ${activeBillion}`,
    )
  }
})

test('every card names the repository and file of its numbers', () => {
  for (const card of tables.cards) {
    assert.ok(
      card.sources.some((source) => /layers|widths|defaults|config|numbers/.test(source.gives)),
      `${card.id} names no source of its shape`,
    )
    for (const source of card.sources)
      assert.match(source.repository, /^[\w.-]+\/[\w.-]+$/, `${card.id}: ${source.repository}`)
  }
})

test('names and aliases of cards are unique', () => {
  const names = tables.cards
    .flatMap((card) => [card.id, ...card.aliases])
    .map((name) => name.toLowerCase())
  assert.equal(new Set(names).size, names.length)
})

test('the families people run are in the catalogue', () => {
  const types = new Set(tables.cards.map((card) => card.id))
  for (const id of [
    'qwen3-235b-a22b',
    'qwen3.5-27b',
    'llama-3.3-70b',
    'llama-4-scout',
    'deepseek-v3',
    'deepseek-v4-flash',
    'kimi-k2',
    'glm-5',
    'gpt-oss-120b',
    'gemma-3-27b',
    'mistral-7b',
    'mixtral-8x7b',
    'minimax-m2',
    'smollm2-135m',
  ])
    assert.ok(types.has(id), id)
})

test('cards agree with the table of shapes that the measured rows use', () => {
  const shapes = readShapes(fixture('model-shapes.csv'), 'model-shapes.csv')
  assert.equal(shapes.kind, 'read')
  if (shapes.kind !== 'read') return
  for (const [name, row] of shapes.shapes) {
    const found = findModel(name, tables)
    assert.equal(found.kind, 'found', name)
    if (found.kind !== 'found') continue
    const own = rowShapeFromModel(name, found.model.shape, found.model.format)
    assert.equal(own.layers, row.layers, name)
    assert.equal(own.hidden, row.hidden, name)
    assert.equal(own.kind, row.kind, name)
    assert.equal(own.kvBytesPerToken, row.kvBytesPerToken, name)
    const active = row.quantisedParameters + row.sixteenBitParameters
    const computed = own.quantisedParameters + own.sixteenBitParameters
    assert.ok(Math.abs(computed / active - 1) < 0.06, `${name}: ${computed} against ${active}`)
  }
})

test('findModel() finds a model by name, alias, repository and quantisation', () => {
  const name = (asked: string): string => {
    const found = findModel(asked, tables)
    return found.kind === 'found' ? `${found.model.id}:${found.model.format.name}` : found.message
  }
  assert.equal(name('deepseek-v3'), 'deepseek-v3:q4')
  assert.equal(name('DSV3'), 'deepseek-v3:q4')
  assert.equal(name('qwen3-235b-a22b:q8'), 'qwen3-235b-a22b:q8')
  assert.equal(name('mlx-community/Qwen3-235B-A22B-Instruct-2507-8bit'), 'qwen3-235b-a22b:q8')
  assert.equal(name('gpt-oss-120b'), 'gpt-oss-120b:mxfp4-q8')
  assert.match(name('depseek-v3'), /not in the catalogue; did you mean deepseek-v3\?/)
  assert.match(name('deepseek-v3:q2'), /is not known as "q2"; there are q8, q4/)
})

test('findModel() reads a model folder, and refuses what it does not know', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bushel-model-'))
  try {
    const write = (config: unknown): void =>
      writeFileSync(join(folder, 'config.json'), JSON.stringify(config))
    mkdirSync(folder, { recursive: true })
    const llama = {
      model_type: 'llama',
      hidden_size: 576,
      num_hidden_layers: 30,
      num_attention_heads: 9,
      num_key_value_heads: 3,
      intermediate_size: 1536,
      vocab_size: 49_152,
      max_position_embeddings: 8192,
      tie_word_embeddings: true,
      quantization: { group_size: 64, bits: 4 },
    }
    write(llama)
    const found = findModel(folder, tables)
    assert.equal(found.kind, 'found')
    if (found.kind === 'found') {
      assert.equal(found.model.format.bitsPerWeight, 4.5)
      assert.equal(Math.round(countParameters(found.model.shape).total / 1e5), 1345)
    }
    const refusal = (config: unknown): string => {
      write(config)
      const outcome = findModel(folder, tables)
      return outcome.kind === 'unknown' ? outcome.message : 'found'
    }
    assert.match(
      refusal({ ...llama, model_type: 'made_up' }),
      /architecture "made_up" is not in the table/,
    )
    assert.match(refusal({ ...llama, hidden_size: undefined }), /"hidden_size" is missing/)
    assert.match(refusal({ ...llama, num_hidden_layers: -3 }), /"num_hidden_layers" is -3/)
    assert.match(refusal({ ...llama, hidden_size: 1e9 }), /whole number is needed/)
    assert.match(refusal([1, 2]), /holds no object/)
    writeFileSync(join(folder, 'config.json'), '{')
    const broken = findModel(folder, tables)
    assert.ok(broken.kind === 'unknown' && /is not JSON/.test(broken.message))
  } finally {
    rmSync(folder, { recursive: true })
  }
})
