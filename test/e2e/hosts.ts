// Several hosts on one box: each a network namespace with its own mounts and home, every pair joined by two
// links called thunderbolt and ethernet. Needs the box of in-box.sh around it.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { ClusterView } from '../../src/wire/cluster-view.ts'

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
    return {
      // Probes of many links at once would be felt by whatever else is timed.
      BUSHEL_MEASURE_LINKS: 'off',
      ...process.env,
      BUSHEL_HOME: this.home,
      HOME: this.home,
      MKL_NUM_THREADS: '1',
    }
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

  /** The command line on this host, left running; its pid is the command's own. */
  spawnCli(args: readonly string[]): ChildProcess {
    const [command, all] = this.#inside([join(programDir, 'bushel'), ...args])
    return spawn(command, all, { env: this.#env, stdio: ['pipe', 'pipe', 'pipe'] })
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

  /** Reads a route of this host's daemon; null while it does not answer. */
  get(path: string): Promise<unknown> {
    return new Promise((done) => {
      const outgoing = request(
        { socketPath: this.#socket, path, headers: { host: 'localhost' }, timeout: 5000 },
        (response) => {
          let text = ''
          response.on('data', (chunk: Buffer) => (text += chunk.toString()))
          response.on('end', () => done(response.statusCode === 200 ? JSON.parse(text) : null))
          response.on('error', () => done(null))
        },
      )
      outgoing.on('error', () => done(null))
      outgoing.on('timeout', () => outgoing.destroy())
      outgoing.end()
    })
  }

  /** Whether the daemon answers at all. */
  async isUp(): Promise<boolean> {
    return (await this.get('/healthz')) !== null
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
  readonly hosts: Host[]
  #pairs = 0
  readonly folder: string

  private constructor(hosts: Host[], folder: string) {
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
    const box = new Box([], folder)
    for (const name of names)
      await box.addHost(
        name,
        box.hosts.map((host) => host.name),
      )
    return box
  }

  /** Another host, cabled twice to each of the named ones. */
  async addHost(name: string, cabledTo: readonly string[]): Promise<Host> {
    const host = new Host(name, this.folder)
    for (const other of cabledTo) {
      this.#pairs += 1
      joinHosts(other, name, { kind: 'thunderbolt', subnet: `10.77.${this.#pairs}` })
      joinHosts(other, name, { kind: 'ethernet', subnet: `10.88.${this.#pairs}` })
    }
    await host.ready()
    this.hosts.push(host)
    return host
  }

  /** Waits for every daemon, brings the others in with one code, and waits until the inviter sees all alive. */
  async gather(inviter: Host): Promise<void> {
    for (const host of this.hosts)
      await until(() => host.isUp(), `the daemon of ${host.name}`, 60_000)
    const others = this.hosts.filter((host) => host !== inviter)
    const uses = String(others.length)
    const { code } = (await inviter.json('invite', '--uses', uses)) as { code: string }
    for (const host of others) await host.json('join', code)
    await until(
      async () => {
        const view = (await inviter.get('/cluster/view')) as ClusterView | null
        const alive = view?.machines.filter((machine) => machine.state === 'alive')
        return alive?.length === this.hosts.length
      },
      `${this.hosts.length} hosts in one cluster`,
      20_000,
    )
  }

  /** Waits until every host sees every other alive, not the inviter alone. */
  async allHear(): Promise<void> {
    for (const host of this.hosts)
      await until(async () => {
        const view = (await host.get('/cluster/view')) as ClusterView | null
        const heard = view?.machines.filter((machine) => machine.state === 'alive')
        return heard?.length === this.hosts.length
      }, `${host.name} to hear all others`)
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

  /** What a sends to b over one cable goes through this queueing discipline. */
  shape(a: string, b: string, kind: LinkKind, discipline: readonly string[]): void {
    const device = `${prefixOf[kind]}-${b}`
    execFileSync('tc', ['-n', a, 'qdisc', 'add', 'dev', device, 'root', ...discipline])
  }

  /** What a sends to b is lost; what b sends arrives. A queue that holds nothing drops everything. */
  oneWayCut(a: string, b: string, state: 'cut' | 'healed'): void {
    for (const kind of ['thunderbolt', 'ethernet'] as const) {
      const device = `${prefixOf[kind]}-${b}`
      const change =
        state === 'cut'
          ? ['add', 'dev', device, 'root', 'tbf', 'rate', '8bit', 'burst', '1', 'limit', '1']
          : ['del', 'dev', device, 'root']
      execFileSync('tc', ['-n', a, 'qdisc', ...change], { stdio: ['ignore', 'ignore', 'inherit'] })
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.hosts.map((host) => host.destroy()))
  }
}

function joinHosts(
  a: string,
  b: string,
  { kind, subnet }: { kind: LinkKind; subnet: string },
): void {
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
