// Reads the files of the knowledge base and names their state by one digest: whoever has built
// something from files with the same digest need not parse them again.
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { checkKnowledge } from './check-knowledge.ts'
import { type KnowledgeFile, knowledgeFolders, parseFiles } from './parse-files.ts'
import { KnowledgeFilesError } from './problems.ts'
import type { Knowledge } from './schema.ts'

export interface KnowledgeFiles {
  readonly files: readonly KnowledgeFile[]
  readonly digest: string
}

export function readKnowledgeFiles(dataDir: string): KnowledgeFiles {
  const hash = createHash('sha256')
  const files: KnowledgeFile[] = []
  for (const folder of knowledgeFolders)
    for (const name of namesIn(dataDir, folder)) {
      const content = readFileSync(join(dataDir, folder, name), 'utf8')
      files.push({ folder, path: `data/kb/${folder}/${name}`, content })
      hash.update(`${folder}/${name}\0${content}\0`)
    }
  return { files, digest: hash.digest('hex') }
}

function namesIn(dataDir: string, folder: string): string[] {
  try {
    return readdirSync(join(dataDir, folder))
      .filter((name) => name.endsWith('.md'))
      .sort()
  } catch {
    const message = 'cannot be listed; is this Bushel complete?'
    throw new KnowledgeFilesError([{ file: join(dataDir, folder), line: 0, message }])
  }
}

/** Everything the files say, or a KnowledgeFilesError that names each bad line. */
export function parseKnowledge(files: readonly KnowledgeFile[]): Knowledge {
  const parsed = parseFiles(files)
  const problems = parsed.problems.length > 0 ? parsed.problems : checkKnowledge(parsed)
  if (problems.length > 0) throw new KnowledgeFilesError(problems)
  return {
    findings: parsed.findings.map(({ thing }) => thing).sort((a, b) => a.id - b.id),
    conflicts: parsed.conflicts.map(({ thing }) => thing),
    topics: parsed.topics.map(({ thing }) => thing),
  }
}
