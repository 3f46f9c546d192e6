// Reads the options of kb commands; what cannot be meant is refused with what could be.
import { InvalidArgumentError } from 'commander'

const hitsMax = 100

export function parseLimit(text: string): number {
  const limit = Number(text)
  if (!Number.isInteger(limit) || limit < 1 || limit > hitsMax)
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${hitsMax}.`)
  return limit
}

/** Collects "--tag a --tag b" and "--tag a,b" alike. */
export function collectWords(text: string, earlier: readonly string[] = []): string[] {
  const words = text.split(',').map((word) => word.trim().toLowerCase())
  return [...earlier, ...words.filter((word) => word !== '')]
}

export function collectChoices<Choice extends string>(
  choices: readonly Choice[],
): (text: string, earlier?: readonly Choice[]) => Choice[] {
  return (text, earlier = []) => {
    const chosen = collectWords(text).map((word) => {
      const choice = choices.find((one) => one === word)
      if (choice === undefined)
        throw new InvalidArgumentError(`"${word}" is none of ${choices.join(', ')}.`)
      return choice
    })
    return [...earlier, ...chosen]
  }
}
