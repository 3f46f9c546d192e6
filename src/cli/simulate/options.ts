// The flags of "bushel simulate", read once.
import { InvalidArgumentError } from 'commander'
import { type PlantedBug, isPlantedBug, plantedBugs } from '../../simulator/plant.ts'

export interface SimulateOptions {
  readonly json?: boolean
  readonly seeds?: number
  readonly seed?: number
  readonly from?: number
  readonly machines?: number
  readonly minutes?: number
  readonly threads?: number
  readonly plant?: PlantedBug
  readonly planted?: boolean
  readonly first?: boolean
  readonly markdown?: boolean
  readonly twice?: boolean
  readonly soak?: number
  readonly trace?: boolean
}

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (!Number.isInteger(value) || value < least || value > most)
      throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
    return value
  }
}

export function plantedBug(text: string): PlantedBug {
  if (isPlantedBug(text)) return text
  throw new InvalidArgumentError(`There are: ${Object.keys(plantedBugs).join(', ')}.`)
}
