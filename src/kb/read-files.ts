// Reads the files of the knowledge base and names their state by one digest: whoever has built
// something from files with the same digest need not parse them again.
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { KnowledgeFilesError } from './problems.ts'

export const knowledgeFolders = ['findings', 'conflicts', 'topics'] as const
export type KnowledgeFolder = (typeof knowledgeFolders)[number]

export const synonymsFile = 'synonyms.toml'

export interface KnowledgeFile {
  readonly folder: KnowledgeFolder | typeof synonymsFile
  /** As its author knows it, such as data/kb/findings/0306-rdma.md. */
  readonly path: string
  readonly content: string
}

export interface KnowledgeFiles {
  readonly files: readonly KnowledgeFile[]
  readonly digest: string
}

export function readKnowledgeFiles(dataDir: string): KnowledgeFiles {
  const hash = createHash('sha256')
  const files: KnowledgeFile[] = []
  const read = (folder: KnowledgeFile['folder'], name: string): void => {
    const content = readFileSync(join(dataDir, name), 'utf8')
    files.push({ folder, path: `data/kb/${name}`, content })
    hash.update(`${name}\0${content}\0`)
  }
  for (const folder of knowledgeFolders)
    for (const name of namesIn(dataDir, folder)) read(folder, `${folder}/${name}`)
  read(synonymsFile, synonymsFile)
  return { files, digest: hash.digest('hex') }
}

function namesIn(dataDir: string, folder: string): string[] {
  try {
    return readdirSync(join(dataDir, folder))
      .filter((name) => name.endsWith('.md'))
      .sort()
  } catch {
    const message = 'this folder cannot be listed; is this copy of Bushel complete?'
    throw new KnowledgeFilesError([{ file: join(dataDir, folder), line: 1, message }])
  }
}
