// Fits the constants to measured rows: the most likely values given what was known before (the
// priors) and the rows, with heavy tails so that one odd row does not bend the rest. Gauss–Newton
// on logarithms; small enough to run again for every source left out.
import {
  type Constants,
  constantNames,
  constantTable,
  mapConstants,
  priorConstants,
} from '../cost/constants.ts'
import type { ChipFigures } from '../cost/figures.ts'
import { predictRow } from './predict-row.ts'
import type { Row } from './row.ts'

export interface Fit {
  readonly constants: Constants
  readonly spread: Constants
}

/** Rows of good provenance repeat within this; a row three times further off counts little. */
const rowSpread = 0.05
const tailSpreads = 2
const stepsMax = 40
const derivativeStep = 1e-4
const settled = 1e-5

export function fitConstants(
  rows: readonly Row[],
  chip: (code: string) => ChipFigures,
  priors: Constants = priorConstants(),
): Fit {
  const names = constantNames
  const measured = rows.filter((row) => row.measured !== null)
  const at = (logs: readonly number[]): Constants =>
    mapConstants((name) => {
      const entry = constantTable[name]
      const value = priors[name] * Math.exp(logs[names.indexOf(name)] ?? 0)
      return Math.min(entry.high, Math.max(entry.low, value))
    })
  const errors = (logs: readonly number[]): number[] => {
    const constants = at(logs)
    return measured.map(
      (row) =>
        Math.log(predictRow(row, { chip, constants }).tokensPerSecond / (row.measured ?? 1)) /
        rowSpread,
    )
  }
  let logs: number[] = names.map(() => 0)
  let curvature: number[][] = []
  for (let step = 0; step < stepsMax; step++) {
    const residuals = errors(logs)
    const weights = residuals.map((error) => 1 / (1 + (error / tailSpreads) ** 2))
    const slopes = names.map((_, index) => {
      const moved = logs.with(index, (logs[index] ?? 0) + derivativeStep)
      return errors(moved).map((error, row) => (error - (residuals[row] ?? 0)) / derivativeStep)
    })
    curvature = names.map((name, i) =>
      names.map((_, j) => {
        let sum = i === j ? 1 / constantTable[name].priorSpread ** 2 : 0
        for (let row = 0; row < measured.length; row++)
          sum += (weights[row] ?? 0) * (slopes[i]?.[row] ?? 0) * (slopes[j]?.[row] ?? 0)
        return sum
      }),
    )
    const pull = names.map((name, i) => {
      let sum = -(logs[i] ?? 0) / constantTable[name].priorSpread ** 2
      for (let row = 0; row < measured.length; row++)
        sum -= (weights[row] ?? 0) * (slopes[i]?.[row] ?? 0) * (residuals[row] ?? 0)
      return sum
    })
    const change = solve(curvature, pull)
    logs = logs.map((value, index) => value + Math.max(-0.3, Math.min(0.3, change[index] ?? 0)))
    if (change.every((value) => Math.abs(value) < settled)) break
  }
  const spreads = names.map((_, index) => {
    const unit = names.map((__, other) => (other === index ? 1 : 0))
    return Math.sqrt(solve(curvature, unit)[index] ?? 0)
  })
  return {
    constants: at(logs),
    spread: mapConstants((name) => spreads[names.indexOf(name)] ?? constantTable[name].priorSpread),
  }
}

/** Gaussian elimination with pivoting; the matrix is small and positive. */
function solve(matrix: readonly (readonly number[])[], right: readonly number[]): number[] {
  const size = right.length
  const rows = matrix.map((row, index) => [...row, right[index] ?? 0])
  for (let column = 0; column < size; column++) {
    let pivot = column
    for (let row = column + 1; row < size; row++)
      if (Math.abs(rows[row]?.[column] ?? 0) > Math.abs(rows[pivot]?.[column] ?? 0)) pivot = row
    const swap = rows[column] ?? []
    rows[column] = rows[pivot] ?? []
    rows[pivot] = swap
    const top = rows[column] ?? []
    for (let row = column + 1; row < size; row++) {
      const target = rows[row] ?? []
      const factor = (target[column] ?? 0) / (top[column] ?? 1)
      for (let k = column; k <= size; k++) target[k] = (target[k] ?? 0) - factor * (top[k] ?? 0)
    }
  }
  const result = Array.from({ length: size }, () => 0)
  for (let row = size - 1; row >= 0; row--) {
    const line = rows[row] ?? []
    let value = line[size] ?? 0
    for (let k = row + 1; k < size; k++) value -= (line[k] ?? 0) * (result[k] ?? 0)
    result[row] = value / (line[row] ?? 1)
  }
  return result
}
