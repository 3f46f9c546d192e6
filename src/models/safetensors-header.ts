// Reads and checks the header of a safetensors file before any native loader touches it.
import { type FileHandle, open } from 'node:fs/promises'
import { z } from 'zod'

export class ModelFileError extends Error {
  override readonly name = 'ModelFileError'
}

export interface TensorEntry {
  readonly name: string
  readonly dtype: string
  readonly shape: readonly number[]
  readonly start: number
  readonly end: number
}

export interface SafetensorsHeader {
  readonly tensors: readonly TensorEntry[]
  /** Where tensor bytes begin. */
  readonly dataOffset: number
}

const headerBytesMax = 100_000_000
const bitsOf: Readonly<Record<string, number>> = {
  BOOL: 8,
  U8: 8,
  I8: 8,
  F8_E4M3: 8,
  F8_E5M2: 8,
  U16: 16,
  I16: 16,
  F16: 16,
  BF16: 16,
  U32: 32,
  I32: 32,
  F32: 32,
  U64: 64,
  I64: 64,
  F64: 64,
}

const entrySchema = z.object({
  dtype: z.string(),
  shape: z.array(z.number().int().min(0)),
  data_offsets: z.tuple([z.number().int().min(0), z.number().int().min(0)]),
})

export async function readSafetensorsHeader(path: string): Promise<SafetensorsHeader> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    const length = await readLength(file, { path, size })
    const bytes = Buffer.alloc(length)
    await file.read(bytes, 0, length, 8)
    return parseHeader(bytes.toString('utf8'), { path, size, dataOffset: 8 + length })
  } finally {
    await file.close()
  }
}

async function readLength(
  file: FileHandle,
  { path, size }: { path: string; size: number },
): Promise<number> {
  if (size < 8)
    throw new ModelFileError(`${path} is cut off: ${size} bytes are no safetensors file`)
  const prefix = Buffer.alloc(8)
  await file.read(prefix, 0, 8, 0)
  const length = prefix.readBigUInt64LE(0)
  if (length > BigInt(Math.min(size - 8, headerBytesMax))) {
    throw new ModelFileError(
      `${path} is broken: its header claims ${length} bytes, the file has ${size}; download it again`,
    )
  }
  return Number(length)
}

export function parseHeader(
  text: string,
  about: { path: string; size: number; dataOffset: number },
): SafetensorsHeader {
  const { path, size, dataOffset } = about
  const broken = (why: string): ModelFileError =>
    new ModelFileError(`${path} is broken: ${why}; download it again`)
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw broken('its header is not JSON')
  }
  if (json === null || typeof json !== 'object' || Array.isArray(json))
    throw broken('its header is no table')
  const tensors: TensorEntry[] = []
  for (const [name, value] of Object.entries(json)) {
    if (name === '__metadata__') continue
    const parsed = entrySchema.safeParse(value)
    if (!parsed.success) throw broken(`tensor "${name}" is described wrongly`)
    const {
      dtype,
      shape,
      data_offsets: [start, end],
    } = parsed.data
    const bits = bitsOf[dtype]
    if (bits === undefined) throw broken(`tensor "${name}" has the unknown type ${dtype}`)
    const bytes = (shape.reduce((product, length) => product * length, 1) * bits) / 8
    if (!Number.isSafeInteger(bytes) || end - start !== bytes) {
      throw broken(`tensor "${name}" says ${end - start} bytes where its shape needs ${bytes}`)
    }
    if (dataOffset + end > size) throw broken(`tensor "${name}" ends behind the end of the file`)
    tensors.push({ name, dtype, shape, start, end })
  }
  const overlap = findOverlap(tensors)
  if (overlap !== null) throw broken(`tensors "${overlap[0]}" and "${overlap[1]}" overlap`)
  return { tensors, dataOffset }
}

function findOverlap(tensors: readonly TensorEntry[]): readonly [string, string] | null {
  const order = [...tensors].sort((a, b) => a.start - b.start || a.end - b.end)
  for (const [index, tensor] of order.entries()) {
    const next = order[index + 1]
    if (next !== undefined && next.start < tensor.end) return [tensor.name, next.name]
  }
  return null
}
