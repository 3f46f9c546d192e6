// The course of a launch: ranks end one by one, the first failure decides for all. Pure: what happened goes in,
// what to do comes out.

export type RankEnd =
  | { readonly kind: 'exited'; readonly code: number; readonly signal: number }
  /** Its machine is gone, silent, or could not start it. */
  | { readonly kind: 'lost'; readonly reason: string }

export interface Course {
  readonly machines: readonly string[]
  /** By rank; null while it runs. */
  readonly ends: readonly (RankEnd | null)[]
  readonly firstFailure: { readonly rank: number; readonly end: RankEnd } | null
}

export function beginCourse(machines: readonly string[]): Course {
  return { machines, ends: machines.map(() => null), firstFailure: null }
}

export interface CourseStep {
  readonly course: Course
  /** Ranks that still run and must not: another one has failed. */
  readonly stop: readonly number[]
}

export function rankEnded(course: Course, rank: number, end: RankEnd): CourseStep {
  if (course.ends[rank] !== null) return { course, stop: [] }
  const ends = course.ends.with(rank, end)
  const isFirst = course.firstFailure === null && isFailure(end)
  const next = { ...course, ends, firstFailure: isFirst ? { rank, end } : course.firstFailure }
  const running = ends.flatMap((one, index) => (one === null ? [index] : []))
  return { course: next, stop: isFirst ? running : [] }
}

function isFailure(end: RankEnd): boolean {
  return end.kind === 'lost' || end.code !== 0 || end.signal !== 0
}

export function hasEnded(course: Course): boolean {
  return course.ends.every((end) => end !== null)
}

/** As a shell counts: the code itself, or 128 and the signal. */
export function exitCode(course: Course): number {
  const end = course.firstFailure?.end
  if (end === undefined) return 0
  if (end.kind === 'lost') return 1
  return end.signal === 0 ? end.code : 128 + end.signal
}

export function causeOf(course: Course): string {
  const { firstFailure } = course
  if (firstFailure === null) return 'every rank ended well'
  const { rank, end } = firstFailure
  return `rank ${rank} on ${course.machines[rank] ?? 'its machine'} ${describeEnd(end)}`
}

export function describeEnd(end: RankEnd | null): string {
  if (end === null) return 'was still running'
  if (end.kind === 'lost') return `was lost: ${end.reason}`
  if (end.signal !== 0) return `was ended by ${signalName(end.signal)}`
  return end.code === 0 ? 'ended well' : `ended with exit code ${end.code}`
}

const signalNames: Readonly<Record<number, string>> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  4: 'SIGILL',
  6: 'SIGABRT',
  8: 'SIGFPE',
  9: 'SIGKILL',
  11: 'SIGSEGV',
  13: 'SIGPIPE',
  15: 'SIGTERM',
}

const signalName = (number: number): string => signalNames[number] ?? `signal ${number}`
