// The machine we run on: commands with a deadline that holds even when the program cannot be killed,
// files of /proc and /sys, and plain TCP connections.
import { spawn } from 'node:child_process'
import { readFile, readdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { probeLimits } from '../../../core/machine-facts/limits.ts'
import type {
  CommandOutcome,
  ConnectResult,
  ConnectTarget,
  MachineAccess,
  ReadOutcome,
  RunCommand,
  SystemAddress,
} from '../../../ports/machine-access.ts'

/** After a polite signal a healthy program is gone at once; a wedged one is left to the kernel. */
const killGraceMs = 500

/** A daemon's PATH often lacks the folders where macOS keeps ifconfig, route and sysctl. */
const systemFolders = ['/usr/bin', '/bin', '/usr/sbin', '/sbin']

export function createRealAccess(env: Readonly<Record<string, string | undefined>>): MachineAccess {
  return {
    runCommand: createRunCommand(env),
    readText,
    listFolder: async (path) => {
      try {
        return (await readdir(path)).toSorted()
      } catch {
        return null
      }
    },
    connectTcp,
    listAddresses: async () => systemAddresses(),
  }
}

export function createRunCommand(env: Readonly<Record<string, string | undefined>>): RunCommand {
  const folders = [...(env['PATH'] ?? '').split(':'), ...systemFolders].filter((one) => one !== '')
  // One language for all, and no input: a program that asks for a password gets none and ends.
  const childEnv = { ...env, PATH: [...new Set(folders)].join(':'), LC_ALL: 'C', LANG: 'C' }
  return (argv, { timeoutMs }) => runOnce({ argv, timeoutMs, env: childEnv })
}

function runOnce(job: {
  readonly argv: readonly string[]
  readonly timeoutMs: number
  readonly env: Readonly<Record<string, string | undefined>>
}): Promise<CommandOutcome> {
  const [program = '', ...rest] = job.argv
  return new Promise((resolve) => {
    // A group of its own, so that helpers of the program end with it.
    const child = spawn(program, rest, {
      env: job.env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    const texts = { stdout: '', stderr: '' }
    const signalGroup = (signal: NodeJS.Signals): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, signal)
      } catch {
        // Already gone.
      }
    }
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8')
      child[name].on('data', (chunk: string) => {
        texts[name] += chunk
        if (texts[name].length > probeLimits.outputBytesMax) signalGroup('SIGKILL')
      })
    }
    const deadline = setTimeout(() => {
      signalGroup('SIGTERM')
      setTimeout(() => signalGroup('SIGKILL'), killGraceMs).unref()
      child.stdout.destroy()
      child.stderr.destroy()
      child.unref()
      resolve({ kind: 'timed-out', afterMs: job.timeoutMs })
    }, job.timeoutMs)
    child.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(deadline)
      if (error.code === 'ENOENT') resolve({ kind: 'missing' })
      else resolve({ kind: 'exited', exitCode: 126, stdout: '', stderr: error.message })
    })
    child.on('close', (code, signal) => {
      clearTimeout(deadline)
      const exitCode = code ?? (signal === null ? 1 : 128)
      resolve({ kind: 'exited', exitCode, ...texts })
    })
  })
}

async function readText(path: string): Promise<ReadOutcome> {
  try {
    return { kind: 'text', text: await readFile(path, 'utf8') }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'EUNKNOWN'
    return code === 'ENOENT' || code === 'ENOTDIR' ? { kind: 'missing' } : { kind: 'refused', code }
  }
}

function connectTcp(target: ConnectTarget): Promise<ConnectResult> {
  return new Promise((resolve) => {
    const socket = connect({ host: target.host, port: target.port })
    const end = (result: ConnectResult): void => {
      socket.destroy()
      resolve(result)
    }
    socket.setTimeout(target.timeoutMs, () => end({ kind: 'failed', code: 'ETIMEDOUT' }))
    socket.once('connect', () => end({ kind: 'connected' }))
    socket.once('error', (error: NodeJS.ErrnoException) =>
      end({ kind: 'failed', code: error.code ?? 'EUNKNOWN' }),
    )
  })
}

function systemAddresses(): readonly SystemAddress[] {
  return Object.entries(networkInterfaces()).flatMap(([name, addresses]) =>
    (addresses ?? []).map((one) => ({
      interface: name,
      family: one.family === 'IPv4' ? ('ipv4' as const) : ('ipv6' as const),
      address: one.address,
      prefixLength: Number(one.cidr?.split('/')[1] ?? 0),
      hardwareAddress: one.mac,
    })),
  )
}
