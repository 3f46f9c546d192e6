// One measured or asked-for row: its columns, read and checked.
import { readCsv } from './csv.ts'
import type { RowShape } from './row-shape.ts'

export type RowStrategy =
  | { readonly kind: 'single' }
  | { readonly kind: 'tensor' }
  | { readonly kind: 'pipeline' }
  | { readonly kind: 'expert' }
  | { readonly kind: 'tensor-pipeline'; readonly ways: number }
  | { readonly kind: 'replicas' }

export type RowTransport = 'fast' | 'slow' | 'rdma' | 'tcp' | 'rpc' | 'unknown'

export interface Row {
  readonly line: number
  readonly phase: 'decode' | 'prefill'
  readonly shape: RowShape
  readonly bitsPerWeight: number
  /** Chip codes as written; fewer than machines when they repeat. */
  readonly hardware: readonly string[]
  readonly machines: number
  readonly strategy: RowStrategy
  readonly transport: RowTransport
  readonly contextTokens: number
  readonly measured: number | null
  readonly source: string
  /** The source says that it ran the engine of 2024, which lost time outside the model. */
  readonly oldEngine: boolean
}

export const rowColumns: readonly string[] = [
  'phase',
  'model',
  'bits_per_weight',
  'hardware',
  'nodes',
  'strategy',
  'collective_regime_or_transport',
  'context',
]

export type RowsOutcome =
  | { readonly kind: 'read'; readonly rows: readonly Row[] }
  | { readonly kind: 'unreadable'; readonly message: string }

/** Unstated bits of a prefill row: what most people run. It matters only where memory is the limit. */
const prefillBitsAssumed = 4.5

function readStrategy(text: string, machines: number): RowStrategy | string {
  const plain = text.toLowerCase().replaceAll(/[\s_]/g, '')
  if (plain === 'single' || plain === '' || plain === '-') return { kind: 'single' }
  if (plain === 'tp' || plain === 'tensor') return { kind: 'tensor' }
  if (plain === 'pp' || plain === 'pipeline') return { kind: 'pipeline' }
  if (plain === 'ep' || plain === 'expert') return { kind: 'expert' }
  if (plain === 'dp' || plain === 'replicas') return { kind: 'replicas' }
  const both = /^tp(\d*)[x×*+/]?pp(\d*)$/.exec(plain)
  if (both !== null) {
    const stages = Number(both[2])
    const ways = Number(both[1]) || (stages > 0 ? machines / stages : 2)
    if (Number.isInteger(ways) && ways > 0 && machines % ways === 0)
      return { kind: 'tensor-pipeline', ways }
    return `the strategy "${text}" does not fit ${machines} machines`
  }
  return `the strategy is "${text}"; it must be single, TP, PP, EP, TPxPP or DP`
}

function readTransport(text: string): RowTransport | null {
  const plain = text.toLowerCase().replaceAll(/[\s_]/g, '')
  if (plain === '' || plain === '?' || plain === 'unknown') return 'unknown'
  if (plain === '-') return 'rdma'
  if (plain === 'low' || plain === 'fast') return 'fast'
  if (plain === 'high' || plain === 'slow') return 'slow'
  if (plain.includes('rpc')) return 'rpc'
  if (/tcp|ring|ethernet|gbe|wifi|-ip$|tbip/.test(plain)) return 'tcp'
  if (/rdma|jaccl/.test(plain)) return 'rdma'
  return null
}

export function readRows(
  text: string,
  options: {
    readonly name: string
    readonly shapes: ReadonlyMap<string, RowShape>
    readonly knownChip: (code: string) => boolean
    readonly chipCodes: readonly string[]
  },
): RowsOutcome {
  const csv = readCsv(text, { name: options.name, wanted: rowColumns })
  if (csv.kind === 'unreadable') return csv
  const rows: Row[] = []
  for (const raw of csv.rows) {
    const fail = (message: string): RowsOutcome => ({
      kind: 'unreadable',
      message: `${options.name} line ${raw.line}: ${message}`,
    })
    const phase = raw.get('phase')
    if (phase !== 'decode' && phase !== 'prefill')
      return fail(`phase is "${phase}"; it must be decode or prefill`)
    const shape = options.shapes.get(raw.get('model'))
    if (shape === undefined)
      return fail(
        `no shape is given for the model "${raw.get('model')}"; add it to the shapes file`,
      )
    const machines = Number(raw.get('nodes'))
    if (!Number.isInteger(machines) || machines < 1 || machines > 1000)
      return fail(`nodes is "${raw.get('nodes')}"; a whole number from 1 to 1000 is needed`)
    const context = Number(raw.get('context') || NaN)
    if (!(context >= 1 && context <= 100_000_000))
      return fail(`context is "${raw.get('context')}"; a number of tokens is needed`)
    const bits = Number(raw.get('bits_per_weight') || NaN)
    if (!(bits >= 0 && bits <= 64) || (phase === 'decode' && bits === 0))
      return fail(`bits_per_weight is "${raw.get('bits_per_weight')}"; decode needs more than 0`)
    const hardware = raw
      .get('hardware')
      .split('+')
      .map((code) => code.trim())
    for (const code of hardware)
      if (!options.knownChip(code))
        return fail(
          `the hardware code "${code}" is unknown; known are ${options.chipCodes.join(', ')}`,
        )
    if (hardware.length > machines)
      return fail(
        `${hardware.length} chips are named for ${machines} machine${machines === 1 ? '' : 's'}`,
      )
    const strategy = readStrategy(raw.get('strategy'), machines)
    if (typeof strategy === 'string') return fail(strategy)
    const transport = readTransport(raw.get('collective_regime_or_transport'))
    if (transport === null)
      return fail(
        `the transport is "${raw.get('collective_regime_or_transport')}"; it must be low, high, RDMA, TCP, RPC/TCP, - or empty`,
      )
    const measured = Number(raw.get('measured_tok_s') || NaN)
    rows.push({
      line: raw.line,
      phase,
      shape,
      bitsPerWeight: bits === 0 ? prefillBitsAssumed : bits,
      hardware,
      machines,
      strategy,
      transport,
      contextTokens: context,
      measured: measured > 0 ? measured : null,
      source: raw.get('source'),
      oldEngine: /2024 engine/.test(raw.get('source')),
    })
  }
  return { kind: 'read', rows }
}
