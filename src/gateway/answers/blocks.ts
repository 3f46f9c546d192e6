// An answer put together from its parts, in the order in which the model wrote it.
import type { Part } from '../../core/serving/request.ts'

export type Block =
  | { readonly type: 'content'; text: string }
  | { readonly type: 'reasoning'; text: string }
  /** `whole` is false when the answer ended inside the call. */
  | { readonly type: 'call'; readonly name: string; arguments: string; whole: boolean }

export type CallBlock = Extract<Block, { type: 'call' }>

export class Blocks {
  readonly list: Block[] = []
  /** The stop string that ended the answer. */
  stop: string | null = null

  push(parts: readonly Part[]): void {
    for (const part of parts) this.#take(part)
  }

  #take(part: Part): void {
    const last = this.list.at(-1)
    switch (part.type) {
      case 'content':
      case 'reasoning':
        if (last?.type === part.type) last.text += part.text
        else if (part.text !== '') this.list.push({ ...part })
        return
      case 'tool-call':
        this.list.push({ type: 'call', name: part.name, arguments: part.arguments, whole: true })
        return
      case 'tool-call-start':
        this.list.push({ type: 'call', name: part.name, arguments: '', whole: false })
        return
      case 'tool-call-delta':
        if (last?.type === 'call') last.arguments += part.arguments
        return
      case 'tool-call-end':
        if (last?.type === 'call') last.whole = true
        return
      case 'stop':
        this.stop = part.text
        return
      case 'embedding':
        return
    }
  }

  text(type: 'content' | 'reasoning'): string {
    let text = ''
    for (const block of this.list) if (block.type === type) text += block.text
    return text
  }

  get calls(): readonly CallBlock[] {
    return this.list.filter((block) => block.type === 'call')
  }
}
