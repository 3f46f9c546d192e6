// Opens the knowledge base for a command and turns what is wrong with its files into a UserError.
import { join } from 'node:path'
import type { KnowledgeBase } from '../../kb/knowledge-base.ts'
import { openKnowledgeBase } from '../../kb/open.ts'
import { KnowledgeFilesError } from '../../kb/problems.ts'
import { type CliContext, UserError } from '../command.ts'
import { homeDir } from '../settings.ts'

export async function openKb(
  context: Pick<CliContext, 'env' | 'programDir'>,
): Promise<KnowledgeBase> {
  try {
    return await openKnowledgeBase({
      dataDir: join(context.programDir, 'data/kb'),
      cacheDir: join(homeDir(context.env), 'kb'),
    })
  } catch (error) {
    if (error instanceof KnowledgeFilesError) throw new UserError(error.message, { cause: error })
    throw error
  }
}

export async function withKb<Result>(
  context: Pick<CliContext, 'env' | 'programDir'>,
  use: (kb: KnowledgeBase) => Result | Promise<Result>,
): Promise<Result> {
  const kb = await openKb(context)
  try {
    return await use(kb)
  } finally {
    kb.close()
  }
}
