// bushel launch: runs an MLX program over the machines of the cluster, one rank on each.
import type { Command } from 'commander'
import {
  type LaunchRequest,
  type ToLaunchClient,
  launchRequest,
  launchSignals,
} from '../../wire/launch-messages.ts'
import { type CliContext, UserError, exitCodes } from '../command.ts'
import { type DaemonClient, requireDaemon } from '../daemon-client.ts'
import { InputForwarder, launchOn } from '../launch/launch-client.ts'
import { PrefixedOutput } from '../launch/prefixed-output.ts'
import { type ScriptFolder, readScriptFolder } from '../launch/script-folder.ts'
import { homeDir } from '../settings.ts'

interface Options {
  readonly machines?: string
  readonly backend: string
  readonly env: readonly string[]
  readonly json?: boolean
}

type Ended = Extract<ToLaunchClient, { kind: 'ended' }>
type World = Extract<ToLaunchClient, { kind: 'world' }>

const flushMs = 100

export function register(command: Command, context: CliContext): void {
  command
    .argument(
      '<script>',
      'a Python script; its folder is copied (64 MB at most), hidden files are not',
    )
    .argument('[arguments...]', 'for the script, after "--"')
    .option('--machines <names>', 'one rank on each of these, in this order; all by default')
    .option('--backend <name>', 'auto, ring, jaccl, jaccl-ring or nccl', 'auto')
    .option(
      '--env <name=value>',
      'a variable for every rank',
      (one: string, all: readonly string[]) => [...all, one],
      [],
    )
    .passThroughOptions()
    .addHelpText(
      'after',
      '\nMachines take part when their owner has set "allow_launch = true" in config.toml.\nExample: bushel launch --machines studio,mini -- train.py --steps 100',
    )
    .action(async (script: string, args: readonly string[], options: Options) => {
      const daemon = requireDaemon(homeDir(context.env))
      const folder = await readScriptFolder(script)
      const request = readRequest(options, { folder, args })
      const run = new LaunchRun(daemon, options.json === true)
      const ended = await run.follow(launchOn(daemon, request, folder), context)
      if (options.json === true) context.out.json({ ...ended, ...run.world })
      else if (ended.code !== 0) context.out.note(`bushel: ${ended.cause}; all ranks are ended`)
      process.exitCode = ended.code
    })
}

function readRequest(
  options: Options,
  about: { folder: ScriptFolder; args: readonly string[] },
): LaunchRequest {
  const usage = { exitCode: exitCodes.usage }
  const pairs = options.env.map((pair) => {
    const at = pair.indexOf('=')
    if (!/^[A-Za-z_]\w*=/.test(pair))
      throw new UserError(`--env takes NAME=VALUE, not "${pair}"`, usage)
    return [pair.slice(0, at), pair.slice(at + 1)] as const
  })
  const { script, files, bytes } = about.folder
  const parsed = launchRequest.safeParse({
    kind: 'launch',
    machines: options.machines?.split(',').map((name) => name.trim()) ?? [],
    backend: options.backend,
    script,
    args: about.args,
    env: Object.fromEntries(pairs),
    files: files.length,
    bytes,
  })
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const [part, value] = issue?.path ?? []
  if (part === 'backend')
    throw new UserError(
      `There is no backend "${options.backend}": take auto, ring, jaccl, jaccl-ring or nccl`,
      usage,
    )
  if (part === 'machines') throw new UserError('--machines takes names, separated by commas', usage)
  throw new UserError(
    `${part?.toString() ?? 'launch'} ${value?.toString() ?? ''}: ${issue?.message ?? ''}`,
    usage,
  )
}

class LaunchRun {
  readonly #daemon: DaemonClient
  readonly #outputs: Readonly<Record<'stdout' | 'stderr', PrefixedOutput>>
  #world: World | null = null
  #forwarder: InputForwarder | null = null
  #signals = 0

  constructor(daemon: DaemonClient, isJson: boolean) {
    this.#daemon = daemon
    const prefix = (rank: number): string => `[${rank} ${this.#machineOf(rank)}] `
    // With --json, stdout is for the one document.
    const stdout = isJson ? process.stderr : process.stdout
    this.#outputs = {
      stdout: new PrefixedOutput(prefix, (data) => void stdout.write(data)),
      stderr: new PrefixedOutput(prefix, (data) => void process.stderr.write(data)),
    }
  }

  get world(): { backend: string; why: string } | null {
    if (this.#world === null) return null
    const { backend, why } = this.#world
    return { backend, why }
  }

  async follow(messages: AsyncIterable<ToLaunchClient>, context: CliContext): Promise<Ended> {
    const handlers = Object.keys(launchSignals).map((name) => {
      const signal = name as keyof typeof launchSignals
      const handler = (): void => this.#forward(signal)
      process.on(signal, handler)
      return () => process.off(signal, handler)
    })
    const timer = setInterval(() => this.#flush(), flushMs)
    try {
      for await (const message of messages) {
        if (message.kind === 'ended') return message
        if (message.kind === 'refused') throw new UserError(`Cannot launch: ${message.reason}`)
        this.#take(message, context)
      }
      throw new UserError('The daemon ended during the launch, and every rank with it')
    } finally {
      clearInterval(timer)
      for (const output of Object.values(this.#outputs)) output.finish()
      for (const off of handlers) off()
    }
  }

  #take(message: ToLaunchClient, context: CliContext): void {
    if (message.kind === 'accepted') {
      this.#forwarder = new InputForwarder(this.#daemon, message.id)
    } else if (message.kind === 'world') {
      this.#world = message
      const ranks = message.machines.map((machine, rank) => `${rank} on ${machine}`).join(', ')
      context.out.note(`${message.backend}: ranks ${ranks} (${message.why})`)
      void this.#forwarder?.forward(process.stdin)
    } else if (message.kind === 'output') {
      this.#outputs[message.stream].push(message.rank, Buffer.from(message.data, 'base64'))
    }
  }

  /** Asked a second time, nobody wants to wait for a script that does not listen. */
  #forward(signal: keyof typeof launchSignals): void {
    this.#signals += 1
    if (this.#forwarder === null || this.#signals > 2) process.exit(128 + launchSignals[signal])
    void this.#forwarder.send({ signal: this.#signals === 1 ? signal : 'SIGTERM' })
  }

  #flush(): void {
    for (const output of Object.values(this.#outputs)) output.flush()
  }

  #machineOf(rank: number): string {
    return this.#world?.machines[rank] ?? '?'
  }
}
