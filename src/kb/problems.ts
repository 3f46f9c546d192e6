// What can be wrong with a file of the knowledge base, said so that its author finds the place.

export interface Problem {
  readonly file: string
  readonly line: number
  readonly message: string
}

/** More than this many at once is noise; the rest is counted. */
const problemsShownMax = 20

export class KnowledgeFilesError extends Error {
  override readonly name = 'KnowledgeFilesError'
  readonly problems: readonly Problem[]
  constructor(problems: readonly Problem[]) {
    const shown = problems.slice(0, problemsShownMax)
    const lines = shown.map((problem) => `  ${problem.file}:${problem.line}: ${problem.message}`)
    if (problems.length > shown.length) lines.push(`  … and ${problems.length - shown.length} more`)
    super(`Cannot read the knowledge base; mend these lines:\n${lines.join('\n')}`)
    this.problems = problems
  }
}
