// The few ways in which a prober touches a machine. Tests and folders of captures answer the same
// questions from recordings, so every parser is exercised on what real machines printed.

export interface MachineAccess {
  readonly runCommand: RunCommand
  readonly readText: (path: string) => Promise<ReadOutcome>
  /** Names in a folder; null when there is no such folder. */
  readonly listFolder: (path: string) => Promise<readonly string[] | null>
  readonly connectTcp: (target: ConnectTarget) => Promise<ConnectResult>
  /** Addresses as the running program sees them; the fallback where no tool lists them. */
  readonly listAddresses: () => Promise<readonly SystemAddress[]>
}

export type RunCommand = (
  argv: readonly string[],
  options: { readonly timeoutMs: number },
) => Promise<CommandOutcome>

export type CommandOutcome =
  | {
      readonly kind: 'exited'
      readonly exitCode: number
      readonly stdout: string
      readonly stderr: string
    }
  | { readonly kind: 'timed-out'; readonly afterMs: number }
  | { readonly kind: 'missing' }
  /** A folder of captures that does not hold this command. */
  | { readonly kind: 'not-captured' }

export type ReadOutcome =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'missing' }
  /** There, but not readable: EACCES, EINVAL and the like. */
  | { readonly kind: 'refused'; readonly code: string }
  | { readonly kind: 'not-captured' }

export interface ConnectTarget {
  readonly host: string
  readonly port: number
  readonly timeoutMs: number
}

export type ConnectResult =
  | { readonly kind: 'connected' }
  /** "ECONNREFUSED", "EHOSTUNREACH", "ETIMEDOUT"… as the system names it. */
  | { readonly kind: 'failed'; readonly code: string }
  | { readonly kind: 'not-captured' }

export interface SystemAddress {
  readonly interface: string
  readonly family: 'ipv4' | 'ipv6'
  readonly address: string
  readonly prefixLength: number
  readonly hardwareAddress: string
}
