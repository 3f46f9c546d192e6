// bushel run: asks a model from the terminal; chats when no prompt is given.
import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { ensureDaemon } from '../background-daemon.ts'
import { type ChatTurn, streamChat } from '../chat-client.ts'
import { type CliContext, UserError } from '../command.ts'
import type { DaemonClient } from '../daemon-client.ts'
import { modelArgument } from '../model-argument.ts'
import { ensureSetup } from '../setup/ensure.ts'
import { waitUntilReady } from './load.ts'

export function register(command: Command, context: CliContext): void {
  command
    .argument('[model]', 'a name, an MLX folder or a .gguf file (default: the starter model)')
    .argument('[prompt...]', 'what to ask; without it you chat')
    .option('--temperature <t>', 'how freely to choose words')
    .option('--max-tokens <n>', 'longest answer')
    .addHelpText(
      'after',
      `
Examples:
  bushel run                                   chat with the starter model
  bushel run SmolLM2-135M-Instruct "Say hello"
  bushel run "What is the capital of France?"`,
    )
    .action(async (model: string | undefined, prompt: string[], flags: RunFlags) => {
      await ensureSetup(context)
      const daemon = await ensureDaemon(context)
      const asked = split(model, prompt)
      const name = await readyModel({ daemon, context, model: asked.model })
      const session = { daemon, name, flags, context }
      if (asked.prompt !== null) await answer(session, [{ role: 'user', content: asked.prompt }])
      else await chat(session)
    })
}

interface RunFlags {
  readonly temperature?: string
  readonly maxTokens?: string
  readonly json?: boolean
}

interface Session {
  readonly daemon: DaemonClient
  readonly name: string
  readonly flags: RunFlags
  readonly context: CliContext
}

/** A single argument with spaces or a question mark is a question to the starter model. */
function split(
  model: string | undefined,
  prompt: readonly string[],
): { model: string | null; prompt: string | null } {
  if (prompt.length > 0) return { model: model ?? null, prompt: prompt.join(' ') }
  if (model !== undefined && /[\s?]/.test(model)) return { model: null, prompt: model }
  return { model: model ?? null, prompt: null }
}

async function readyModel(wanted: {
  daemon: DaemonClient
  context: CliContext
  model: string | null
}): Promise<string> {
  const { daemon, context } = wanted
  const first = wanted.model ?? (await starterName(daemon))
  const { deployment } = (await daemon.post('/cluster/load-if-absent', {
    model: modelArgument(first),
  })) as { deployment: string }
  const view = await waitUntilReady({ daemon, deployment, context })
  return view.model
}

async function starterName(daemon: DaemonClient): Promise<string> {
  const { data } = (await daemon.get('/v1/models')) as { data: { id: string }[] }
  const first = data[0]
  if (first === undefined)
    throw new UserError('No model is on this machine; fetch one with "bushel pull ORG/NAME"')
  return first.id
}

async function answer(
  { daemon, name, flags, context }: Session,
  messages: readonly ChatTurn[],
): Promise<string> {
  const abort = new AbortController()
  const onInterrupt = (): void => abort.abort()
  process.once('SIGINT', onInterrupt)
  try {
    const { text, usage } = await streamChat(daemon, {
      model: name,
      messages,
      signal: abort.signal,
      ...(flags.temperature === undefined ? {} : { temperature: Number(flags.temperature) }),
      ...(flags.maxTokens === undefined ? {} : { maxTokens: Number(flags.maxTokens) }),
      onText: (piece) => {
        if (flags.json !== true) process.stdout.write(piece)
      },
    })
    if (flags.json === true) context.out.json({ model: name, text, usage })
    else process.stdout.write('\n')
    return text
  } finally {
    process.removeListener('SIGINT', onInterrupt)
  }
}

async function chat(session: Session): Promise<void> {
  const { context, name } = session
  context.out.note(`Chatting with ${name}. An empty line or Ctrl-D ends it.`)
  const prompt = createInterface({ input: process.stdin, output: process.stderr, prompt: '> ' })
  const messages: ChatTurn[] = []
  prompt.prompt()
  for await (const line of prompt) {
    if (line.trim() === '') break
    messages.push({ role: 'user', content: line })
    messages.push({ role: 'assistant', content: await answer(session, messages) })
    prompt.prompt()
  }
  prompt.close()
}
