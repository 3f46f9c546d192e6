// Every command that the Mac prober runs: what it asks, and how long it may take. None changes anything.
import { probeLimits } from '../../../core/machine-facts/limits.ts'
import { processListCommand } from '../processes.ts'

export interface ProbeCommand {
  readonly argv: readonly string[]
  readonly timeoutMs: number
}

const quick = (...argv: string[]): ProbeCommand => ({
  argv,
  timeoutMs: probeLimits.commandTimeoutMs,
})
const profiler = (...argv: string[]): ProbeCommand => ({
  argv: ['system_profiler', ...argv],
  timeoutMs: probeLimits.profilerTimeoutMs,
})
const rdma = (...argv: string[]): ProbeCommand => ({
  argv,
  timeoutMs: probeLimits.rdmaTimeoutMs,
})

const preferences = '/Library/Preferences/SystemConfiguration'
export const sharingPreferences: string = `${preferences}/com.apple.nat.plist`
const firewall = '/usr/libexec/ApplicationFirewall/socketfilterfw'

export const macCommands = {
  swVers: quick('sw_vers'),
  hardware: profiler('SPHardwareDataType', '-json'),
  sysctl: quick(
    'sysctl',
    'hw',
    'machdep.cpu.brand_string',
    'iogpu.wired_limit_mb',
    'kern.memorystatus_vm_pressure_level',
  ),
  vmStat: quick('vm_stat'),
  accelerator: quick('ioreg', '-r', '-d', '1', '-w', '0', '-c', 'IOAccelerator'),
  thunderbolt: profiler('SPThunderboltDataType', '-json'),
  rdmaSetting: rdma('rdma_ctl', 'status'),
  ibvDevices: rdma('ibv_devices'),
  ibvDevinfo: rdma('ibv_devinfo', '-v'),
  hardwarePorts: quick('networksetup', '-listallhardwareports'),
  serviceOrder: quick('networksetup', '-listnetworkserviceorder'),
  ifconfig: quick('ifconfig', '-a'),
  routes: quick('netstat', '-rn', '-f', 'inet'),
  bridges: quick(
    'plutil',
    '-extract',
    'VirtualNetworkInterfaces.Bridge',
    'json',
    '-o',
    '-',
    `${preferences}/preferences.plist`,
  ),
  sharing: quick('plutil', '-convert', 'xml1', '-o', '-', sharingPreferences),
  firewallApplications: quick(firewall, '--listapps'),
  firewallState: quick(firewall, '--getglobalstate'),
  powerSettings: quick('pmset', '-g'),
  powerSource: quick('pmset', '-g', 'batt'),
  fileVault: quick('fdesetup', 'status'),
  processes: quick(...processListCommand),
} as const satisfies Readonly<Record<string, ProbeCommand>>

/** Second choices, asked only when the first one gave nothing: other forms of the same answer. */
export const macFallbacks = {
  thunderboltText: profiler('SPThunderboltDataType'),
  ibvDevinfoBrief: rdma('ibv_devinfo'),
} as const satisfies Readonly<Record<string, ProbeCommand>>

export function serviceInfoCommand(service: string): ProbeCommand {
  return quick('networksetup', '-getinfo', service)
}

export type MacCommandName = keyof typeof macCommands
