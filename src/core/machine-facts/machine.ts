// Everything that is known about one machine, as plain data that can cross a wire unchanged.
import type { Fact } from './fact.ts'
import type {
  FirewallFacts,
  HardwarePort,
  InternetSharing,
  NetworkInterface,
  NetworkService,
  Route,
} from './network.ts'
import type { RdmaFacts } from './rdma.ts'
import type { ThunderboltPort } from './thunderbolt.ts'

export type Platform = 'macos' | 'linux'

export interface MachineFacts {
  /** The name that the cluster, or the folder of captures, gives the machine. */
  readonly name: string
  readonly platform: Platform
  readonly observedAtMs: number
  readonly system: SystemFacts
  readonly hardware: HardwareFacts
  readonly memory: MemoryFacts
  readonly interfaces: Fact<readonly NetworkInterface[]>
  /** Which interface belongs to which port of the case; the names are never computed. */
  readonly hardwarePorts: Fact<readonly HardwarePort[]>
  readonly routes: Fact<readonly Route[]>
  readonly thunderbolt: Fact<readonly ThunderboltPort[]>
  readonly rdma: RdmaFacts
  readonly services: Fact<readonly NetworkService[]>
  /** Bridges that the settings will build again at the next start, with their members. */
  readonly bridgesConfigured: Fact<readonly ConfiguredBridge[]>
  readonly internetSharing: Fact<InternetSharing>
  readonly firewall: FirewallFacts
  readonly power: PowerFacts
  readonly launch: Fact<LaunchContext>
  readonly ranks: RankFacts
  readonly runtime: Fact<RuntimeVersions>
  readonly gpus: Fact<readonly GpuFacts[]>
  /** Keys that this version of Bushel has never seen, so that a newer macOS is noticed. */
  readonly unfamiliar: readonly string[]
}

export interface SystemFacts {
  readonly name: Fact<string>
  readonly version: Fact<string>
  /** "25E253" on a Mac; the kernel release on Linux. */
  readonly build: Fact<string>
  readonly fileVault: Fact<'on' | 'off'>
}

export interface HardwareFacts {
  readonly chip: Fact<string>
  /** "Mac15,14". */
  readonly model: Fact<string>
  /** "Mac Studio". */
  readonly modelName: Fact<string>
  readonly virtual: Fact<boolean>
  readonly cpuCores: Fact<number>
  /** Kinds of core, fastest first; their names change between chip families. */
  readonly cpuClusters: Fact<readonly CpuCluster[]>
  readonly gpuCores: Fact<number>
}

export interface CpuCluster {
  readonly name: string
  readonly cores: number
}

export interface MemoryFacts {
  readonly totalBytes: Fact<number>
  readonly availableBytes: Fact<number>
  readonly pressure: Fact<'normal' | 'warning' | 'critical'>
  /** What Metal may wire. Zero in sysctl means the system's own default, not zero bytes. */
  readonly wiredLimit: Fact<WiredLimit>
  /** The tightest control group around us, on Linux. */
  readonly groupLimitBytes: Fact<number | null>
  readonly groupCpus: Fact<number | null>
}

export type WiredLimit =
  | { readonly kind: 'system-default' }
  | { readonly kind: 'set'; readonly bytes: number }

export interface ConfiguredBridge {
  readonly name: string
  readonly members: readonly string[]
}

export interface PowerFacts {
  /** Minutes until idle sleep; zero is never. */
  readonly sleepMinutes: Fact<number>
  /** Something holds the machine awake for now, in the system's words. */
  readonly sleepHeldBy: Fact<string | null>
  readonly restartAfterPowerLoss: Fact<boolean>
  readonly lowPowerMode: Fact<boolean>
  readonly source: Fact<'mains' | 'battery'>
}

/** How our own process was started, which decides whether Local Network privacy applies to it. */
export interface LaunchContext {
  readonly isRoot: boolean
  /** Names of the parents, nearest first. */
  readonly ancestors: readonly string[]
}

export interface RankFacts {
  readonly processes: Fact<readonly RankProcess[]>
  /** Starts of a JACCL world that failed since this machine booted; each may keep driver resources. */
  readonly failedStartsThisBoot: Fact<number>
}

export interface RankProcess {
  readonly pid: number
  readonly parentPid: number
  /** Whether a living supervisor of ours owns it. Null when nobody could be asked. */
  readonly expected: boolean | null
}

export interface RuntimeVersions {
  readonly python: string
  readonly mlx: string
  readonly mlxLm: string
  /** MLX backends that this build holds: "ring", "jaccl", "nccl", "mpi". */
  readonly backends: readonly string[]
}

export interface GpuFacts {
  readonly index: number
  readonly name: string
  readonly memoryTotalBytes: Fact<number>
  readonly memoryFreeBytes: Fact<number>
  readonly unifiedMemory: boolean
  readonly computeCapability: Fact<string>
  readonly driver: Fact<string>
}

/** What one machine finds when it turns to a peer's address. */
export interface PathFacts {
  readonly machine: string
  readonly peer: string
  readonly address: string
  readonly port: number | null
  readonly routeInterface: Fact<string>
  readonly ping: Fact<boolean>
  /** From our own process, which Local Network privacy may stop. */
  readonly fromUs: Fact<ConnectOutcome>
  /** From a program of the system, which it never stops. */
  readonly fromSystem: Fact<ConnectOutcome>
}

export type ConnectOutcome = 'connected' | 'refused' | 'unreachable' | 'timed-out'
