// Chance, given from outside so that a simulated cluster can be replayed.

export interface Entropy {
  /** This many random bytes in hex. */
  hex(bytes: number): string
}
