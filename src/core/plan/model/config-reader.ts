// Reads sizes out of a config.json whose values may be anything at all.

/** A key that is missing or makes no sense; caught where the config is turned into a shape. */
export class ConfigGap extends Error {
  override readonly name = 'ConfigGap'
}

export interface ConfigReader {
  /** A positive whole number that must be there. */
  size(key: string, max?: number): number
  optionalSize(key: string): number | null
  flag(key: string): boolean | null
  texts(key: string): readonly string[] | null
  numbers(key: string): readonly number[] | null
}

/** No size in any model comes near; larger ones are damage. */
const largestSize = 100_000_000

export function readConfig(config: Readonly<Record<string, unknown>>): ConfigReader {
  const optionalSize = (key: string): number | null => {
    const value = config[key]
    if (value === undefined || value === null) return null
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > largestSize)
      throw new ConfigGap(`"${key}" is ${JSON.stringify(value)}; a whole number is needed`)
    return value
  }
  return {
    optionalSize,
    size: (key, max = largestSize) => {
      const value = optionalSize(key)
      if (value === null) throw new ConfigGap(`"${key}" is missing`)
      if (value === 0 || value > max)
        throw new ConfigGap(`"${key}" is ${value}; a number from 1 to ${max} is needed`)
      return value
    },
    flag: (key) => {
      const value = config[key]
      return typeof value === 'boolean' ? value : null
    },
    numbers: (key) => {
      const value = config[key]
      return Array.isArray(value) && value.every((entry) => typeof entry === 'number')
        ? value
        : null
    },
    texts: (key) => {
      const value = config[key]
      return Array.isArray(value) && value.every((entry) => typeof entry === 'string')
        ? value
        : null
    },
  }
}
