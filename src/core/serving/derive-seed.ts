// Seeds for the further choices of one request: as good as drawn anew, yet the same for the same request.

const mask = (1n << 64n) - 1n

/** The first choice has the seed that was asked for; the others are mixed from it (SplitMix64). */
export function deriveSeed(seed: string, choice: number): string {
  if (choice === 0) return seed
  let mixed = (BigInt(seed) + BigInt(choice) * 0x9e3779b97f4a7c15n) & mask
  mixed = ((mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n) & mask
  mixed = ((mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn) & mask
  return (mixed ^ (mixed >> 31n)).toString()
}
