import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chipByCode, chipCodes, fixture } from '../../../../test/planner-rows.ts'
import { fittedConstants } from '../cost/fitted.ts'
import { type RowPrediction, predictRow } from './predict-row.ts'
import { readRows } from './row.ts'
import { readShapes } from './row-shape.ts'
import { assumedSplit } from './row-stages.ts'

const header =
  'phase,model,bits_per_weight,hardware,nodes,strategy,collective_regime_or_transport,context,measured_tok_s,source'
const shapesText = fixture('model-shapes.csv')

function rowsOf(...lines: string[]): ReturnType<typeof readRows> {
  const shapes = readShapes(shapesText, 'shapes.csv')
  if (shapes.kind === 'unreadable') assert.fail(shapes.message)
  return readRows([header, ...lines].join('\n'), {
    name: 'rows.csv',
    shapes: shapes.shapes,
    knownChip: (code) => chipCodes.includes(code),
    chipCodes,
  })
}
const complaint = (line: string): string => {
  const outcome = rowsOf(line)
  return outcome.kind === 'unreadable' ? outcome.message : 'read'
}
function predict(line: string): RowPrediction {
  const outcome = rowsOf(line)
  if (outcome.kind === 'unreadable') assert.fail(outcome.message)
  const row = outcome.rows[0]
  assert.ok(row !== undefined)
  return predictRow(row, { chip: chipByCode, constants: fittedConstants })
}

test('readRows() names the line and the column of what is wrong', () => {
  assert.match(
    complaint('decode,qwen32,4.5,M3U,1,single,-'),
    /rows\.csv line 2: 7 of 10 columns are there; "context" is missing/,
  )
  assert.match(
    complaint('decode,qwen99,4.5,M3U,1,single,-,128,,x'),
    /line 2: no shape is given for the model "qwen99"/,
  )
  assert.match(
    complaint('decode,qwen32,4.5,M9U,1,single,-,128,,x'),
    /hardware code "M9U" is unknown; known are .*M3U/,
  )
  assert.match(complaint('decode,qwen32,4.5,M3U,two,TP,low,128,,x'), /nodes is "two"/)
  assert.match(
    complaint('decode,qwen32,0,M3U,1,single,-,128,,x'),
    /bits_per_weight is "0"; decode needs more than 0/,
  )
  assert.match(complaint('decode,qwen32,4.5,M3U,2,XP,low,128,,x'), /strategy is "XP"/)
  assert.match(complaint('decode,qwen32,4.5,M3U,2,TP,loud,128,,x'), /transport is "loud"/)
  assert.match(complaint('think,qwen32,4.5,M3U,1,single,-,128,,x'), /phase is "think"/)
  assert.match(complaint('decode,qwen32,4.5,M3U,1,single,-,,,x'), /context is ""/)
  assert.match(
    complaint('decode,qwen32,4.5,M3U+M4P,1,single,-,128,,x'),
    /2 chips are named for 1 machine/,
  )
  assert.match(
    complaint('decode,qwen32,4.5,M3U,1,single,-,128,,"open'),
    /quotation mark is never closed/,
  )
})

test('readRows() names a missing column', () => {
  const outcome = readRows('phase,model\ndecode,qwen32', {
    name: 'rows.csv',
    shapes: new Map(),
    knownChip: () => true,
    chipCodes: [],
  })
  assert.ok(
    outcome.kind === 'unreadable' &&
      /rows\.csv line 1: the column "bits_per_weight" is missing/.test(outcome.message),
  )
})

test('readRows() does without measured values and sources', () => {
  const shapes = readShapes(shapesText, 'shapes.csv')
  assert.ok(shapes.kind === 'read')
  const outcome = readRows(
    'phase,model,bits_per_weight,hardware,nodes,strategy,collective_regime_or_transport,context\ndecode,qwen32,4.5,M3U,1,single,-,128\n',
    { name: 'rows.csv', shapes: shapes.shapes, knownChip: () => true, chipCodes },
  )
  assert.ok(outcome.kind === 'read' && outcome.rows[0]?.measured === null)
})

test('readShapes() refuses absurd shapes in a sentence', () => {
  const refuse = (line: string): string => {
    const outcome = readShapes(`${shapesText.split('\n')[0] ?? ''}\n${line}`, 'shapes.csv')
    return outcome.kind === 'unreadable' ? outcome.message : 'read'
  }
  assert.match(refuse('x,0,5120,32,0,262144,dense,5120'), /shapes\.csv line 2: layers is "0"/)
  assert.match(refuse('x,64,-1,32,0,262144,dense,5120'), /hidden is "-1"/)
  assert.match(
    refuse('x,64,5120,nan,0,262144,dense,5120'),
    /active_quantised_params_billion is "nan"/,
  )
  assert.match(refuse('x,64,5120,0,0,262144,dense,5120'), /has no parameters at all/)
  assert.match(refuse('x,64,5120,32,0,262144,sparse,5120'), /kind is "sparse"/)
  assert.match(refuse('x,6.5,5120,32,0,262144,dense,5120'), /must be whole/)
  assert.equal(refuse('x,64,5120,32,0,0,dense,5120'), 'read')
  assert.match(refuse('x,64,5120,32,0,,dense,5120'), /kv_bytes_per_token_fp16 is ""/)
})

test('readShapes() takes further columns, and empty cells where they have a usual meaning', () => {
  const head = shapesText.split('\n')[0] ?? ''
  const read = (line: string): unknown => {
    const outcome = readShapes(`${head},remark\n${line}`, 'shapes.csv')
    return outcome.kind === 'read' ? outcome.shapes.get('x') : outcome.message
  }
  assert.deepEqual(
    read('x,64,5120,32,,262144,dense,,from a card'),
    read('x,64,5120,32,0,262144,dense,5120,'),
  )
})

test('predictRow() covers both regimes when the regime is unknown', () => {
  const unknown = predict('decode,dsv3,4.5,M3U,4,TP,,128,,x')
  const fast = predict('decode,dsv3,4.5,M3U,4,TP,low,128,,x')
  const slow = predict('decode,dsv3,4.5,M3U,4,TP,high,128,,x')
  assert.equal(unknown.low, slow.low)
  assert.equal(unknown.high, fast.high)
  assert.ok(
    unknown.tokensPerSecond > slow.tokensPerSecond &&
      unknown.tokensPerSecond < fast.tokensPerSecond,
  )
})

test('predictRow() states no range wider than 1.6 for one reading of a row, however little is known', () => {
  // All-reduces over TCP were never fitted: their spread alone would say more.
  for (const hardware of ['M3U', 'M2U', 'SPARK']) {
    const { low, high } = predict(`decode,llama8,4.5,${hardware},8,TP,TCP,128,,x`)
    assert.ok(high / low <= 1.6 && high / low > 1.5, String(high / low))
  }
})

test('predictRow() states no range wider than 1.6 unless the regime of collectives is open', () => {
  for (const row of [
    'decode,qwen32,4.5,M3U+M5X,4,PP,high,2048,,x',
    'prefill,qwen32,0,M3U+M5X,4,PP,-,2048,,x',
    'decode,llama3b,4.5,M3U,4,PP,,128,,x',
    'prefill,llama3b,0,SPARK,8,PP,,4096,,x',
  ]) {
    const { low, high, tokensPerSecond } = predict(row)
    assert.ok(high / low <= 1.6 + 1e-9, `${row}: ${high / low}`)
    assert.ok(low < tokensPerSecond && tokensPerSecond < high)
  }
})

test('predictRow() adds up replicas by what each chip does', () => {
  const rate = (hardware: string, machines: number): number =>
    predict(`decode,llama8,4.5,${hardware},${machines},DP,-,128,,x`).tokensPerSecond
  const mixed = rate('M3U+M4P', 2)
  assert.ok(Math.abs(mixed / (0.85 * (rate('M3U', 1) + rate('M4P', 1))) - 1) < 1e-9)
  assert.ok(Math.abs(rate('M3U', 4) / (4 * 0.85 * rate('M3U', 1)) - 1) < 1e-9)
})

test('predictRow() predicts every strategy, transport and mix without nonsense', () => {
  for (const strategy of ['single', 'TP', 'PP', 'EP', 'TP2xPP2', 'TPxPP', 'DP'])
    for (const transport of ['low', 'high', '', '-', 'TCP', 'RPC/TCP', '10GbE', 'JACCL'])
      for (const hardware of ['M3U', 'M2U', 'SPARK', 'M3U+M4P', 'M5X+M4X+SPARK+M2U'])
        for (const phase of ['decode', 'prefill']) {
          const { tokensPerSecond, low, high } = predict(
            `${phase},mixtral,${phase === 'decode' ? '4.5' : '0'},${hardware},4,${strategy},${transport},4096,,x`,
          )
          assert.ok(
            low > 0 && low <= tokensPerSecond && tokensPerSecond <= high && Number.isFinite(high),
            `${phase} ${strategy} ${transport} ${hardware}: ${low} ${tokensPerSecond} ${high}`,
          )
        }
})

test('predictRow() stays under the roofline at every context', () => {
  for (const context of [1, 128, 8192, 131_072]) {
    const { tokensPerSecond, high } = predict(`decode,qwen32,4.5,M3U,1,single,-,${context},,x`)
    const roof = 819e9 / (32e9 * (4.5 / 8) + 262_144 * context)
    assert.ok(tokensPerSecond < roof && high <= roof)
  }
})

test('assumedSplit() cuts evenly while that fits, else by memory', () => {
  const stages = [{ memoryBytes: 400 }, { memoryBytes: 48 }]
  assert.deepEqual(assumedSplit(94, stages, 90), [47, 47])
  assert.deepEqual(assumedSplit(94, stages, 250), [84, 10])
})
