// Embedding models for tests: the starter's folder with the files by which such models say what they are, and a
// small BERT with random weights.
import { execFileSync } from 'node:child_process'
import { copyFileSync, linkSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const runtime =
  process.env['BUSHEL_RUNTIME'] ?? resolve(import.meta.dirname, '..', '..', '.runtime')
const starter = join(runtime, 'models', 'SmolLM2-135M-Instruct')

export function writeEmbedder(folder: string): void {
  mkdirSync(folder, { recursive: true })
  for (const name of readdirSync(starter)) share(join(starter, name), join(folder, name))
  const pooling = [
    { idx: 1, name: '1', path: '1_Pooling', type: 'sentence_transformers.models.Pooling' },
  ]
  writeFileSync(join(folder, 'modules.json'), JSON.stringify(pooling))
  mkdirSync(join(folder, '1_Pooling'))
  writeFileSync(join(folder, '1_Pooling', 'config.json'), '{"pooling_mode_lasttoken":true}')
}

/** Made by the helper of the worker's own tests; its vectors mean nothing, but they are a BERT's. */
export function writeEncoder(folder: string): void {
  const program =
    'import sys; from pathlib import Path; from tests.encoders import write_encoder; write_encoder(Path(sys.argv[1]))'
  const worker = resolve(import.meta.dirname, '..', '..', 'worker')
  const env = { ...process.env, PYTHONPATH: worker, PYTHONDONTWRITEBYTECODE: '1' }
  execFileSync(join(runtime, 'python', 'bin', 'python'), ['-c', program, folder], { env })
}

/** A link where it can be one: the weights are large. */
function share(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch {
    copyFileSync(from, to)
  }
}
