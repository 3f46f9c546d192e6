// How well and how fast the knowledge base finds what people ask for.
//   node bench/kb-retrieval.ts            both halves, and how long a search takes
//   node bench/kb-retrieval.ts --misses   also what the tuning half misses (never the held-out half)
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openKnowledgeBase } from '../src/kb/open.ts'
import { type Half, measureRetrieval, readQuestions } from './kb/measure.ts'

const root = join(import.meta.dirname, '..')
const started = performance.now()
const kb = await openKnowledgeBase({ dataDir: join(root, 'data/kb'), cacheDir: null })
const openMs = performance.now() - started
const copyMs = await fromCopy()
const questions = readQuestions(join(root, 'bench/kb/questions.toml'))
const search = (ask: string): number[] => kb.search(ask).hits.map((hit) => hit.finding.id)

for (const half of ['tuning', 'held-out'] satisfies Half[]) {
  const measured = measureRetrieval(questions, half, search)
  console.log(
    `${half.padEnd(9)} ${measured.count} questions  recall@5 ${measured.recallAt5.toFixed(3)}  ` +
      `hit@5 ${measured.hitAt5.toFixed(3)}  MRR ${measured.meanReciprocalRank.toFixed(3)}`,
  )
  if (half === 'tuning' && process.argv.includes('--misses'))
    for (const miss of measured.misses)
      console.log(
        `  ${miss.ask}\n    right ${miss.right.join(' ')}  found ${miss.found.slice(0, 6).join(' ')}`,
      )
}

const rounds = 20
for (const { ask } of questions) search(ask)
const cpuBefore = process.cpuUsage()
const times = Array.from({ length: rounds }, () =>
  questions.map(({ ask }) => {
    const before = performance.now()
    search(ask)
    return performance.now() - before
  }),
)
  .flat()
  .sort((a, b) => a - b)
const cpu = process.cpuUsage(cpuBefore)
const cpuMs = (cpu.user + cpu.system) / 1000 / times.length
const at = (share: number): string =>
  (times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Number.NaN).toFixed(2)
// A busy machine stretches the slowest; the time of the processor does not suffer from that.
console.log(
  `search    median ${at(0.5)} ms  p99 ${at(0.99)} ms  max ${at(1)} ms  processor ${cpuMs.toFixed(2)} ms  (${times.length} searches)`,
)
console.log(
  `start     built from the files in ${openMs.toFixed(0)} ms, from its copy in ${copyMs.toFixed(0)} ms`,
)
kb.close()

/** How long opening takes once a copy lies in the cache. */
async function fromCopy(): Promise<number> {
  const cacheDir = mkdtempSync(join(tmpdir(), 'bushel-kb-bench-'))
  const open = async (): Promise<number> => {
    const before = performance.now()
    const opened = await openKnowledgeBase({ dataDir: join(root, 'data/kb'), cacheDir })
    opened.close()
    return performance.now() - before
  }
  await open()
  const ms = await open()
  rmSync(cacheDir, { recursive: true })
  return ms
}
