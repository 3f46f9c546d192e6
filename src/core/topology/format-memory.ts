// Memory as it is sold and printed on the box: 96 GB are 96 × 2³⁰ bytes.
import { GiB } from '../units.ts'

export function formatMemory(bytes: number): string {
  return `${Math.round(bytes / GiB)} GB`
}
