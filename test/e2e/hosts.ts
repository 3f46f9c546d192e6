// Several hosts on one box: each a network namespace with its own mounts and home, every pair joined by two
// links called thunderbolt and ethernet. Needs the box of in-box.sh around it.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

export const programDir: string = resolve(import.meta.dirname, '..', '..')
export const apiPort = 28743

export type LinkKind = 'thunderbolt' | 'ethernet'

const prefixOf: Readonly<Record<LinkKind, string>> = { thunderbolt: 'tb', ethernet: 'eth' }

export class Host {
  readonly name: string
  readonly home: string
  readonly #holder: ChildProcess
  readonly #socket: string
  #forward: ChildProcess | null = null
  daemon: ChildProcess | null = null
  daemonOutput = ''

  constructor(name: string, folder: string) {
    this.name = name
    // The same path on every host, and on each something else: only its own mount is there.
    this.home = join(folder, 'home')
    this.#socket = join(folder, `${name}.socket`)
    ip('netns', 'add', name)
    ip('-n', name, 'link', 'set', 'lo', 'up')
    this.#holder = spawn(
      'ip',
      [
        'netns',
        'exec',
        name,
        'unshare',
        '--mount',
        'sh',
        '-c',
        `mkdir -p ${this.home} && mount -t tmpfs none ${this.home} && exec sleep infinity`,
      ],
      { stdio: 'ignore' },
    )
  }

  /** Waits until the host's own mounts are made. */
  async ready(): Promise<void> {
    await until(() => {
      try {
        return readFileSync(`/proc/${this.#holder.pid}/mounts`, 'utf8').includes(this.home)
      } catch {
        return false
      }
    }, `the mounts of host ${this.name}`)
    this.#forward = spawn(
      ...this.#inside([
        process.execPath,
        join(import.meta.dirname, 'forward.ts'),
        this.#socket,
        String(apiPort),
      ]),
      { stdio: 'ignore' },
    )
  }

  #inside(command: readonly string[]): [string, string[]] {
    return ['nsenter', ['-t', String(this.#holder.pid), '-m', '-n', '--', ...command]]
  }

  get #env(): NodeJS.ProcessEnv {
    return { ...process.env, BUSHEL_HOME: this.home, HOME: this.home, MKL_NUM_THREADS: '1' }
  }

  /** Files in this host's own home. */
  write(path: string, text: string): void {
    const [command, args] = this.#inside([
      'sh',
      '-c',
      `mkdir -p "$(dirname "$1")" && cat > "$1"`,
      'sh',
      join(this.home, path),
    ])
    execFileSync(command, args, { input: text })
  }

  read(path: string): string {
    const [command, args] = this.#inside(['cat', join(this.home, path)])
    return execFileSync(command, args, { encoding: 'utf8' })
  }

  sh(script: string): string {
    const [command, args] = this.#inside(['sh', '-c', script])
    return execFileSync(command, args, { encoding: 'utf8', env: this.#env })
  }

  up(...flags: readonly string[]): void {
    const [command, args] = this.#inside([
      join(programDir, 'bushel'),
      'up',
      '--name',
      this.name,
      ...flags,
    ])
    const child = spawn(command, args, { env: this.#env, stdio: ['ignore', 'pipe', 'pipe'] })
    const take = (chunk: Buffer): void => {
      this.daemonOutput += chunk.toString()
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    this.daemon = child
  }

  get daemonPid(): number {
    return (JSON.parse(this.read('run/daemon.json')) as { pid: number }).pid
  }

  async killDaemon(): Promise<void> {
    const child = this.daemon
    process.kill(this.daemonPid, 'SIGKILL')
    if (child !== null && child.exitCode === null && child.signalCode === null)
      await new Promise((done) => child.once('exit', done))
    this.daemon = null
  }

  async stopDaemon(): Promise<void> {
    const child = this.daemon
    if (child === null) return
    process.kill(this.daemonPid, 'SIGTERM')
    if (child.exitCode === null && child.signalCode === null)
      await new Promise((done) => child.once('exit', done))
    this.daemon = null
  }

  /** Runs the command line on this host. */
  cli(...args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const [command, all] = this.#inside([join(programDir, 'bushel'), ...args])
    return new Promise((done) => {
      const child = spawn(command, all, { env: this.#env, stdio: ['ignore', 'pipe', 'pipe'] })
      let stdout = ''
      let stderr = ''
      child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
      child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
      child.on('close', (code) => done({ code: code ?? 1, stdout, stderr }))
    })
  }

  async json(...args: readonly string[]): Promise<unknown> {
    const { code, stdout, stderr } = await this.cli(...args, '--json')
    if (code !== 0)
      throw new Error(`bushel ${args.join(' ')} on ${this.name} failed (${code}): ${stderr}`)
    return JSON.parse(stdout)
  }

  get socketPath(): string {
    return this.#socket
  }

  async destroy(): Promise<void> {
    this.#forward?.kill('SIGKILL')
    if (this.daemon !== null) this.daemon.kill('SIGKILL')
    this.#holder.kill('SIGKILL')
    await new Promise((done) => setTimeout(done, 10))
  }
}

export class Box {
  readonly hosts: readonly Host[]
  readonly folder: string

  private constructor(hosts: readonly Host[], folder: string) {
    this.hosts = hosts
    this.folder = folder
  }

  static async open(names: readonly string[]): Promise<Box> {
    if (process.env['BUSHEL_BOX'] !== '1') {
      throw new Error(
        'these tests need network namespaces: run them through test/e2e/in-box.sh (root, or unprivileged user namespaces)',
      )
    }
    const folder = mkdtempSync(join(tmpdir(), 'bushel-box-'))
    mkdirSync(join(folder, 'home'))
    const hosts = names.map((name) => new Host(name, folder))
    let pair = 0
    for (const [index, a] of names.entries()) {
      for (const b of names.slice(index + 1)) {
        pair += 1
        join2(a, b, { kind: 'thunderbolt', subnet: `10.77.${pair}` })
        join2(a, b, { kind: 'ethernet', subnet: `10.88.${pair}` })
      }
    }
    await Promise.all(hosts.map((host) => host.ready()))
    return new Box(hosts, folder)
  }

  host(name: string): Host {
    const found = this.hosts.find((host) => host.name === name)
    if (found === undefined) throw new Error(`there is no host ${name}`)
    return found
  }

  /** One cable between two hosts, pulled or plugged at one end. */
  link(a: string, b: string, kind: LinkKind, state: 'up' | 'down'): void {
    ip('-n', a, 'link', 'set', `${prefixOf[kind]}-${b}`, state)
  }

  /** Cuts every cable between two groups of hosts. */
  partition(left: readonly string[], right: readonly string[], state: 'up' | 'down'): void {
    for (const a of left)
      for (const b of right)
        for (const kind of ['thunderbolt', 'ethernet'] as const) this.link(a, b, kind, state)
  }

  async close(): Promise<void> {
    await Promise.all(this.hosts.map((host) => host.destroy()))
  }
}

function join2(a: string, b: string, { kind, subnet }: { kind: LinkKind; subnet: string }): void {
  const prefix = prefixOf[kind]
  ip(
    'link',
    'add',
    `${prefix}-${b}`,
    'netns',
    a,
    'type',
    'veth',
    'peer',
    'name',
    `${prefix}-${a}`,
    'netns',
    b,
  )
  for (const [host, other, last] of [
    [a, b, 1],
    [b, a, 2],
  ] as const) {
    ip('-n', host, 'addr', 'add', `${subnet}.${last}/30`, 'dev', `${prefix}-${other}`)
    ip('-n', host, 'link', 'set', `${prefix}-${other}`, 'up')
  }
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'inherit'] })
}

/** Pids of rank processes anywhere in the box. */
export function rankPids(): readonly number[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return []
    try {
      const words = readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0')
      return words.includes('bushel_worker') ? [Number(entry)] : []
    } catch {
      return []
    }
  })
}

export async function until(
  check: () => boolean | Promise<boolean>,
  what: string,
  msMax = 20_000,
): Promise<number> {
  const started = performance.now()
  for (;;) {
    if (await check()) return performance.now() - started
    if (performance.now() - started > msMax) throw new Error(`waited ${msMax} ms for ${what}`)
    await new Promise((done) => setTimeout(done, 50))
  }
}

/** A model that is only a script, in a host's own store. */
export function addScriptedModel(host: Host, name: string, script: object = {}): void {
  host.write(
    `models/${name}/script.json`,
    JSON.stringify({ layers: 8, contextTokens: 8192, ...script }),
  )
}
