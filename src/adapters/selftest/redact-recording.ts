// A recording without names, serials and addresses. Listings that hold more than we need (processes,
// applications, sharing settings with passwords) are cut down to the lines that the probers read.
import type { Redactor } from '../../core/selftest/redact.ts'
import type { CommandOutcome, ReadOutcome } from '../../ports/machine-access.ts'
import type { BundleMachine } from '../../wire/selftest-bundle.ts'
import type { Recording } from '../probers/access/recording.ts'
import { parseInternetSharing, parseConfiguredBridges } from '../probers/mac/network-extras.ts'
import { isRankCommand, parseProcesses } from '../probers/processes.ts'
import { wholeLines } from '../probers/text.ts'

export interface MachineToRedact {
  readonly label: string
  readonly platform: 'macos' | 'linux'
  readonly observedAtMs: number
  readonly self: { readonly pid: number; readonly uid: number } | null
  readonly recording: Recording
}

export function redactMachine(machine: MachineToRedact, redactor: Redactor): BundleMachine {
  const { recording } = machine
  return {
    label: machine.label,
    platform: machine.platform,
    observedAtMs: machine.observedAtMs,
    self: machine.self,
    commands: [...recording.commands.values()].flatMap(({ argv, outcome }) =>
      outcome.kind === 'not-captured'
        ? []
        : [redactCommand({ argv, outcome, self: machine.self }, redactor)],
    ),
    files: Object.fromEntries(
      [...recording.files].flatMap(([path, outcome]) => redactFile(path, outcome, redactor)),
    ),
    folders: Object.fromEntries(
      [...recording.folders].map(([path, names]) => [
        redactor.text(path),
        names === null ? null : names.map(redactor.text),
      ]),
    ),
    connections: Object.fromEntries(
      [...recording.connections].flatMap(([target, result]) =>
        result.kind === 'not-captured' ? [] : [[redactor.text(target), result] as const],
      ),
    ),
    addresses: recording.addresses.map((one) => ({
      ...one,
      interface: redactor.text(one.interface),
      address: redactor.text(one.address),
      hardwareAddress: redactor.text(one.hardwareAddress),
    })),
  }
}

function redactCommand(
  command: {
    readonly argv: readonly string[]
    readonly outcome: Exclude<CommandOutcome, { kind: 'not-captured' }>
    readonly self: MachineToRedact['self']
  },
  redactor: Redactor,
): BundleMachine['commands'][number] {
  // The folder of a program tells where its owner keeps things.
  const [program = '', ...words] = command.argv
  const argv = [program.split('/').at(-1) ?? program, ...words].map(redactor.text)
  if (command.outcome.kind !== 'exited') return { argv, stdout: '', outcome: command.outcome }
  const { exitCode, stdout, stderr } = command.outcome
  const needed = whatIsNeeded(command.argv, stdout, command.self)
  return {
    argv,
    stdout: redactor.text(isRouteTable(command.argv) ? withWholeAddresses(needed) : needed),
    outcome: { kind: 'exited', exitCode, stderr: redactor.text(stderr.slice(0, 2000)) },
  }
}

/** Lines that no prober reads are not worth anyone's privacy. */
function whatIsNeeded(
  argv: readonly string[],
  stdout: string,
  self: MachineToRedact['self'],
): string {
  const tool = argv[0]?.split('/').at(-1)
  if (tool === 'ps') return neededProcesses(stdout, self?.pid ?? null)
  if (tool === 'socketfilterfw' && argv.includes('--listapps')) return neededApplications(stdout)
  if (tool === 'plutil' && argv.some((word) => word.endsWith('com.apple.nat.plist')))
    return sharingAlone(stdout)
  if (tool === 'plutil') return bridgesAlone(stdout)
  return stdout
}

/** Ranks, and the parents of our own process, by the name of their program alone. */
function neededProcesses(stdout: string, selfPid: number | null): string {
  const processes = parseProcesses(stdout)
  if (!processes.known) return ''
  const chain = new Set<number>()
  for (let at = selfPid; at !== null && at > 0 && !chain.has(at);) {
    chain.add(at)
    at = processes.value.find((one) => one.pid === at)?.parentPid ?? null
  }
  return processes.value
    .filter((one) => chain.has(one.pid) || isRankCommand(one.command))
    .map((one) => {
      const program = one.command.split(' ')[0] ?? ''
      const app = /\/([^/]+)\.app\/Contents\/MacOS\//.exec(one.command)?.[0]
      const shown = app ?? program.split('/').at(-1) ?? ''
      return `${one.pid} ${one.parentPid} ${isRankCommand(one.command) ? `${shown} -m bushel_worker` : shown}\n`
    })
    .join('')
}

function neededApplications(stdout: string): string {
  const lines = wholeLines(stdout)
  const kept = lines.flatMap((line, index) => {
    if (line.startsWith('Total number of apps')) return [line]
    const path = /^(\d+\s*:\s*).*\/(node|python[0-9.]*|Python)\s*$/.exec(line)
    return path === null ? [] : [`${path[1]}/bin/${path[2]}`, lines[index + 1] ?? '']
  })
  return kept.map((line) => `${line}\n`).join('')
}

/** The sharing settings also hold the name and password of a Wi-Fi network. */
function sharingAlone(stdout: string): string {
  const sharing = parseInternetSharing(stdout)
  if (!sharing.known) return ''
  const devices = sharing.value.devices
    .map((one) => `<string>${one.replaceAll(/[<&]/g, '')}</string>`)
    .join('')
  return `<plist version="1.0"><dict><key>NAT</key><dict><key>Enabled</key><integer>${sharing.value.enabled ? 1 : 0}</integer><key>SharingDevices</key><array>${devices}</array></dict></dict></plist>\n`
}

function bridgesAlone(stdout: string): string {
  const bridges = parseConfiguredBridges(stdout)
  if (!bridges.known) return ''
  const plain = bridges.value.map((one) => [one.name, { Interfaces: one.members }] as const)
  return `${JSON.stringify(Object.fromEntries(plain))}\n`
}

const isRouteTable = (argv: readonly string[]): boolean => argv[0] === 'netstat'

/** netstat leaves out trailing zeros ("192.0.2"), and what is no whole address would not be recognised. */
function withWholeAddresses(stdout: string): string {
  return wholeLines(stdout)
    .map((line) =>
      line.replace(
        /^(\d+(?:\.\d+){0,2})(?:\/(\d+))?(?=\s)/,
        (_, octets: string, length: string | undefined) => {
          const parts = octets.split('.')
          return `${[...parts, '0', '0', '0'].slice(0, 4).join('.')}/${length ?? parts.length * 8}`
        },
      ),
    )
    .map((line) => `${line}\n`)
    .join('')
}

function redactFile(
  path: string,
  outcome: ReadOutcome,
  redactor: Redactor,
): readonly (readonly [string, Exclude<ReadOutcome, { kind: 'not-captured' }>])[] {
  if (outcome.kind === 'not-captured') return []
  // The content of the sharing settings is read by plutil; here only their existence counts.
  const isSharing = path.endsWith('com.apple.nat.plist')
  const safe =
    outcome.kind === 'text'
      ? { kind: 'text' as const, text: isSharing ? '' : redactor.text(outcome.text) }
      : outcome
  return [[redactor.text(path), safe]]
}

/** Things taken out that still show up somewhere, which would be a fault of ours. */
export function findLeaks(text: string, removed: ReadonlySet<string>): readonly string[] {
  return [...removed].filter((secret) => {
    if (secret.length < 4) return false
    const escaped = secret.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
    return new RegExp(`(?<![A-Za-z0-9])${escaped}(?![A-Za-z0-9])`).test(text)
  })
}
