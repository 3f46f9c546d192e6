// A model that is only a script: the worker plays it without MLX. Tests and demonstrations use it.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { type ModelRef, freelyCut } from '../core/cluster/group-plan.ts'
import { modelDigest } from '../core/ids.ts'

const scriptSchema = z.looseObject({
  layers: z.number().int().min(1).default(8),
  contextTokens: z.number().int().min(1).default(8192),
  weightsBytes: z.number().int().min(0).default(1_000_000),
})

/** The model that folder/script.json describes, or null when the folder holds none. */
export async function readScript(folder: string): Promise<Omit<ModelRef, 'name'> | null> {
  const text = await readFile(join(folder, 'script.json'), 'utf8').catch(() => null)
  if (text === null) return null
  const { layers, contextTokens, weightsBytes } = scriptSchema.parse(JSON.parse(text))
  return {
    digest: modelDigest(createHash('sha256').update(text).digest('hex')),
    architecture: 'scripted',
    layers,
    weightsBytes,
    parameters: Math.round(weightsBytes / 4),
    kvBytesPerToken: 16,
    contextTokens,
    defaults: {},
    cut: freelyCut,
  }
}
