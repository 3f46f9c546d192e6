// What a machine answered, kept as data: recorded while a prober looks, replayed in its place later.
import type {
  CommandOutcome,
  ConnectResult,
  ConnectTarget,
  MachineAccess,
  ReadOutcome,
  SystemAddress,
} from '../../../ports/machine-access.ts'

export interface Recording {
  readonly commands: ReadonlyMap<string, RecordedCommand>
  readonly files: ReadonlyMap<string, ReadOutcome>
  readonly folders: ReadonlyMap<string, readonly string[] | null>
  readonly connections: ReadonlyMap<string, ConnectResult>
  readonly addresses: readonly SystemAddress[]
}

export interface RecordedCommand {
  readonly argv: readonly string[]
  readonly outcome: CommandOutcome
}

export function emptyRecording(): Recording {
  return {
    commands: new Map(),
    files: new Map(),
    folders: new Map(),
    connections: new Map(),
    addresses: [],
  }
}

/**
 * The name under which a command's output is kept: its words, readable in a folder. A word too long to
 * be a file name, such as a script, is kept by its length and a checksum.
 */
export function captureName(argv: readonly string[]): string {
  const [program = '', ...rest] = argv
  const words = [program.split('/').at(-1) ?? program, ...rest].map((word) => {
    const plain = word.replaceAll(/[^A-Za-z0-9_.:=,@+-]/g, '~')
    return plain.length <= 96 ? plain : `${plain.length}-${checksum(word)}`
  })
  return words.join('_')
}

/** FNV-1a: enough to tell two scripts apart in a file name. */
function checksum(text: string): string {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0
  return hash.toString(16).padStart(8, '0')
}

const connectionName = (target: ConnectTarget): string => `${target.host}:${target.port}`

export function replay(recording: Recording): MachineAccess {
  return {
    runCommand: async (argv) =>
      recording.commands.get(captureName(argv))?.outcome ?? { kind: 'not-captured' },
    readText: async (path) => recording.files.get(path) ?? { kind: 'not-captured' },
    listFolder: async (path) => recording.folders.get(path) ?? null,
    connectTcp: async (target) =>
      recording.connections.get(connectionName(target)) ?? { kind: 'not-captured' },
    listAddresses: async () => recording.addresses,
  }
}

/** Passes everything through to the real machine and keeps a copy of each answer. */
export function record(access: MachineAccess): {
  readonly access: MachineAccess
  readonly recording: () => Recording
} {
  const commands = new Map<string, RecordedCommand>()
  const files = new Map<string, ReadOutcome>()
  const folders = new Map<string, readonly string[] | null>()
  const connections = new Map<string, ConnectResult>()
  let addresses: readonly SystemAddress[] = []
  return {
    access: {
      runCommand: async (argv, options) => {
        const outcome = await access.runCommand(argv, options)
        commands.set(captureName(argv), { argv, outcome })
        return outcome
      },
      readText: async (path) => {
        const outcome = await access.readText(path)
        files.set(path, outcome)
        return outcome
      },
      listFolder: async (path) => {
        const names = await access.listFolder(path)
        folders.set(path, names)
        return names
      },
      connectTcp: async (target) => {
        const result = await access.connectTcp(target)
        connections.set(connectionName(target), result)
        return result
      },
      listAddresses: async () => {
        addresses = await access.listAddresses()
        return addresses
      },
    },
    recording: () => ({ commands, files, folders, connections, addresses }),
  }
}
