// Whether what stands in a register is what its key promises. Registers come from other machines, from older
// and newer versions and from disks: a value that cannot be understood here is left alone, and breaks nothing.
import type { Advice } from './advice.ts'
import type { Deployment, RosterEntry } from './desired.ts'
import { type ModelRef, strategies } from './group-plan.ts'

type Fields = Readonly<Record<string, unknown>>

const backends: readonly unknown[] = ['auto', 'ring', 'jaccl', 'nccl']
/** As everywhere else: more is no wish but a mistake. */
const groupsMax = 1000

export function isDeployment(key: string, value: unknown): value is Deployment {
  if (!isFields(value)) return false
  const { id, model, strategy, machines, layers, backend, replicas, standby } = value
  return (
    typeof id === 'string' &&
    key === `deployment/${id}` &&
    isModel(model) &&
    (strategies as readonly unknown[]).includes(strategy) &&
    isListOf(machines, isText) &&
    isListOf(layers, isCount) &&
    backends.includes(backend) &&
    isCount(replicas) &&
    replicas <= groupsMax &&
    typeof standby === 'boolean' &&
    isCount(value['contextTokens']) &&
    (value['keepAliveMs'] === null || isAmount(value['keepAliveMs'])) &&
    isMatrix(value['devices']) &&
    (value['advice'] === undefined || isAdvice(value['advice']))
  )
}

export function isAdvice(value: unknown): value is Advice {
  if (!isFields(value) || typeof value['why'] !== 'string') return false
  if (value['basis'] !== undefined && typeof value['basis'] !== 'string') return false
  if (value['kind'] === 'unknown') return true
  const { strategy, stages, predicted, backend, devices, kbFindings } = value
  const isRange = (range: unknown): boolean =>
    isFields(range) && ['value', 'low', 'high'].every((field) => isAmount(range[field]))
  return (
    value['kind'] === 'planned' &&
    strategy !== 'auto' &&
    (strategies as readonly unknown[]).includes(strategy) &&
    ['ring', 'jaccl'].includes(String(backend)) &&
    isMatrix(devices) &&
    isListOf(kbFindings, isCount) &&
    isListOf(stages, isAdvisedStage) &&
    isFields(predicted) &&
    isText(predicted['restsOn']) &&
    isRange(predicted['tokensPerSecond']) &&
    isRange(predicted['firstTokenSeconds'])
  )
}

function isAdvisedStage(value: unknown): boolean {
  return (
    isFields(value) &&
    isCount(value['layers']) &&
    ['alone', 'tensor', 'expert'].includes(String(value['sharing'])) &&
    isListOf(value['machines'], isText)
  )
}

function isModel(value: unknown): value is ModelRef {
  if (!isFields(value)) return false
  const { name, digest, architecture, layers, defaults, cut } = value
  return (
    [name, digest, architecture].every(isText) &&
    isCount(layers) &&
    layers > 0 &&
    ['weightsBytes', 'parameters', 'kvBytesPerToken'].every((field) => isAmount(value[field])) &&
    isCount(value['contextTokens']) &&
    isFields(defaults) &&
    (cut === undefined || isCut(cut))
  )
}

function isCut(value: unknown): boolean {
  if (!isFields(value)) return false
  return (
    ['pipeline', 'expert', 'tied'].every((field) => typeof value[field] === 'boolean') &&
    ['no', 'even', 'uneven'].includes(String(value['tensor'])) &&
    ['heads', 'kvHeads', 'experts', 'edgeFraction'].every((field) => isAmount(value[field]))
  )
}

function isMatrix(value: unknown): boolean {
  const isCell = (cell: unknown): boolean =>
    cell === null || typeof cell === 'string' || isListOf(cell, isText)
  return value === undefined || isListOf(value, (row) => isListOf(row, isCell))
}

/** The key says whose admission it is; an entry under another's name could never be withdrawn. */
export function isRosterEntry(key: string, value: unknown): value is RosterEntry {
  if (!isFields(value)) return false
  const { machine, name, publicKey, addresses } = value
  return (
    isText(machine) &&
    key.startsWith(`roster/${machine}/`) &&
    isText(name) &&
    typeof publicKey === 'string' &&
    isListOf(addresses, isText)
  )
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isListOf(value: unknown, suits: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(suits)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

function isCount(value: unknown): value is number {
  return isAmount(value) && Number.isInteger(value)
}
