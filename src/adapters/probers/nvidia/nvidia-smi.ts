// nvidia-smi's CSV, with or without a header and units. "[N/A]" means that the driver does not tell,
// which on machines with unified memory is the ordinary answer.
import { type Fact, known, unknown } from '../../../core/machine-facts/fact.ts'
import { wholeLines } from '../text.ts'

export type GpuRow = ReadonlyMap<string, string>

/**
 * Rows by field name. With a header ("memory.used [MiB]") the names are read from it and units are cut
 * off the values; without one the fields asked for name the columns, and a row of another width is dropped.
 */
export function parseGpuRows(
  text: string,
  fields: readonly string[] | 'header',
): Fact<readonly GpuRow[]> {
  const lines = wholeLines(text).filter((line) => line.trim() !== '')
  const first = lines[0]
  if (first === undefined) return unknown('empty', 'nvidia-smi listed no GPU')
  const names =
    fields === 'header' ? cellsOf(first).map((cell) => cell.replace(/ \[.*\]$/, '')) : fields
  const rows = (fields === 'header' ? lines.slice(1) : lines)
    .map(cellsOf)
    .filter((cells) => cells.length === names.length)
    .map((cells) => new Map(cells.map((cell, index) => [names[index] ?? '', cell])))
  return rows.length === 0
    ? unknown('not-understood', 'nvidia-smi printed no row of the expected width')
    : known(rows)
}

function cellsOf(line: string): readonly string[] {
  return line.split(',').map((cell) => cell.trim())
}

const absent = /^\[?(N\/A|Not Supported|Unknown Error|Insufficient Permissions)\]?$/i

export function gpuText(row: GpuRow, field: string): Fact<string> {
  const value = row.get(field)
  if (value === undefined) return unknown('not-printed', `nvidia-smi was not asked for ${field}`)
  return value === '' || absent.test(value)
    ? unknown('not-printed', `the driver answers "${value}" for ${field}`)
    : known(value)
}

/** A number with or without its unit: "678 MiB", "0 %", "3.74 W", "143771". */
export function gpuNumber(row: GpuRow, field: string): Fact<number> {
  const text = gpuText(row, field)
  if (!text.known) return text
  const match = /^(-?\d+(?:\.\d+)?)(?: ?(?:MiB|%|W|MHz|C))?$/.exec(text.value)
  return match === null
    ? unknown('not-understood', `the driver answers "${text.value.slice(0, 40)}" for ${field}`)
    : known(Number(match[1]))
}
