// Chance from the operating system.
import { randomBytes } from 'node:crypto'
import type { Entropy } from '../ports/entropy.ts'

export const cryptoEntropy: Entropy = { hex: (bytes) => randomBytes(bytes).toString('hex') }
