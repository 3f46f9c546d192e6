// Which group last read a prompt that begins like this one: it may still have it in its cache.
import type { GroupId } from '../core/ids.ts'
import type { GenerationRequest } from '../core/serving/request.ts'

const prefixesKept = 2000
/** Long enough to tell two system prompts apart, short enough that a growing conversation stays the same. */
const beginningChars = 512

export class RecentPrefixes {
  readonly #groups = new Map<string, GroupId>()

  groupFor(request: GenerationRequest): GroupId | null {
    return this.#groups.get(beginningOf(request)) ?? null
  }

  remember(request: GenerationRequest, group: GroupId): void {
    const key = beginningOf(request)
    this.#groups.delete(key)
    this.#groups.set(key, group)
    const [oldest] = this.#groups.keys()
    if (this.#groups.size > prefixesKept && oldest !== undefined) this.#groups.delete(oldest)
  }
}

function beginningOf({ deployment, question }: GenerationRequest): string {
  const { prompt, cacheScope } = question
  const text =
    prompt.kind === 'chat'
      ? prompt.messages.map((message) => `${message.role} ${message.content}`).join('\n')
      : prompt.kind === 'text'
        ? prompt.text
        : prompt.ids.slice(0, beginningChars / 4).join()
  return `${deployment} ${cacheScope} ${text.slice(0, beginningChars)}`
}
