// Counts worlds over RDMA that ended before they were ready: each may keep a few of the driver's resources until
// the machine restarts, and after some of them no start succeeds any more.
import type { RankEvents, RankLauncher, RankProcess } from '../ports/rank-launcher.ts'
import type { LoadFrame } from '../wire/worker-frames.ts'

export class WorldStarts implements RankLauncher {
  readonly #inner: RankLauncher
  readonly #onFailed: () => void

  constructor(inner: RankLauncher, onFailed: () => void) {
    this.#inner = inner
    this.#onFailed = onFailed
  }

  launch(load: LoadFrame, events: RankEvents): RankProcess {
    if (load.world.backend !== 'jaccl') return this.#inner.launch(load, events)
    let isReady = false
    return this.#inner.launch(load, {
      frame: (frame) => {
        if (frame.kind === 'ready') isReady = true
        events.frame(frame)
      },
      exit: (cause, crashed) => {
        // A rank that was told to go gives back what it holds.
        if (!isReady && crashed === true) this.#onFailed()
        events.exit(cause, crashed)
      },
    })
  }
}
