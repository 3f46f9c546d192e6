// Ranks as processes: started with a load frame, spoken to in frames, ended by signals.
import type { FrameFromWorker, FrameToWorker, LoadFrame } from '../wire/worker-frames.ts'

export interface RankEvents {
  frame(frame: FrameFromWorker): void
  /**
   * Once, last. The cause is a sentence: exit code or signal, and the last lines it wrote. It crashed when
   * nobody ended it from outside.
   */
  exit(cause: string, crashed?: boolean): void
}

export interface RankProcess {
  readonly pid: number
  send(frame: FrameToWorker): void
  signal(signal: 'TERM' | 'KILL'): void
}

export interface RankLauncher {
  /** Throws when the process cannot even be made; afterwards everything arrives as events. */
  launch(load: LoadFrame, events: RankEvents): RankProcess
}
