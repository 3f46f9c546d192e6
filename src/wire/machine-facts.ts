// Facts of a machine as they cross a process or a link: every shape of core/machine-facts, checked.
import { z } from 'zod'
import type { Fact } from '../core/machine-facts/fact.ts'
import type { MachineFacts, PathFacts } from '../core/machine-facts/machine.ts'

const unknownKind = z.enum([
  'tool-missing',
  'timed-out',
  'needs-admin',
  'tool-failed',
  'empty',
  'not-understood',
  'not-printed',
  'not-captured',
  'not-applicable',
])

function fact<T extends z.ZodType>(value: T): z.ZodType<Fact<z.infer<T>>> {
  return z.discriminatedUnion('known', [
    z.object({ known: z.literal(true), value }),
    z.object({ known: z.literal(false), why: z.object({ kind: unknownKind, detail: z.string() }) }),
  ]) as unknown as z.ZodType<Fact<z.infer<T>>>
}

const text = fact(z.string())
const number = fact(z.number())
const flag = fact(z.boolean())
const strings = z.array(z.string())

const ipv4 = z.object({ address: z.string(), prefixLength: z.number().int().min(0).max(32) })

const networkInterface = z.object({
  name: z.string(),
  kind: z.enum([
    'thunderbolt',
    'ethernet',
    'wifi',
    'bridge',
    'virtual',
    'tunnel',
    'loopback',
    'unknown',
  ]),
  kindFrom: z.enum(['system', 'config']),
  label: z.string().nullable(),
  hardwareAddress: z.string().nullable(),
  ipv4: z.array(ipv4),
  ipv6: strings,
  mtu: z.number().nullable(),
  active: flag,
  speedMbps: number,
  duplex: fact(z.enum(['full', 'half'])),
  members: strings,
  complete: z.boolean(),
})

const thunderboltPort = z.object({
  bus: z.string(),
  receptacle: number,
  domainUuid: text,
  switchUid: text,
  occupancy: fact(z.enum(['connected', 'empty'])),
  speed: fact(z.object({ kind: z.enum(['capability', 'link']), gbps: z.number() })),
  peers: z.array(
    z.object({ name: z.string(), model: text, domainUuid: text, rdmaOffered: flag, via: strings }),
  ),
  devices: z.array(z.object({ name: z.string(), vendor: z.string().nullable(), linkGbps: number })),
})

const rdmaDevice = z.object({
  name: z.string(),
  nodeGuid: text,
  portState: fact(z.enum(['active', 'down', 'other'])),
  portLid: number,
  queuePairsMax: number,
  memoryRegionsMax: number,
  gids: z.array(z.object({ index: z.number().int(), address: z.string() })),
  gidsComplete: z.boolean(),
})

const networkService = z.object({
  name: z.string(),
  enabled: z.boolean(),
  hardwarePort: z.string(),
  device: z.string().nullable(),
  addressing: fact(
    z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('dhcp') }),
      z.object({ kind: z.literal('manual'), address: z.string(), mask: z.string() }),
      z.object({ kind: z.literal('other'), words: z.string() }),
    ]),
  ),
})

const gpu = z.object({
  index: z.number().int(),
  name: z.string(),
  memoryTotalBytes: number,
  memoryFreeBytes: number,
  unifiedMemory: z.boolean(),
  computeCapability: text,
  driver: text,
})

const machineParts = {
  system: z.object({
    name: text,
    version: text,
    build: text,
    fileVault: fact(z.enum(['on', 'off'])),
  }),
  hardware: z.object({
    chip: text,
    model: text,
    modelName: text,
    virtual: flag,
    cpuCores: number,
    cpuClusters: fact(z.array(z.object({ name: z.string(), cores: z.number() }))),
    gpuCores: number,
  }),
  memory: z.object({
    totalBytes: number,
    availableBytes: number,
    pressure: fact(z.enum(['normal', 'warning', 'critical'])),
    wiredLimit: fact(
      z.discriminatedUnion('kind', [
        z.object({ kind: z.literal('system-default') }),
        z.object({ kind: z.literal('set'), bytes: z.number() }),
      ]),
    ),
    groupLimitBytes: fact(z.number().nullable()),
    groupCpus: fact(z.number().nullable()),
  }),
  power: z.object({
    sleepMinutes: number,
    sleepHeldBy: fact(z.string().nullable()),
    restartAfterPowerLoss: flag,
    lowPowerMode: flag,
    source: fact(z.enum(['mains', 'battery'])),
  }),
  firewall: z.object({
    enabled: flag,
    applications: fact(
      z.array(z.object({ path: z.string(), incoming: z.enum(['allow', 'block']) })),
    ),
  }),
  ranks: z.object({
    processes: fact(
      z.array(
        z.object({
          pid: z.number().int(),
          parentPid: z.number().int(),
          expected: z.boolean().nullable(),
        }),
      ),
    ),
    failedStartsThisBoot: number,
  }),
} as const

export const machineFacts: z.ZodType<MachineFacts> = z.object({
  name: z.string(),
  platform: z.enum(['macos', 'linux']),
  observedAtMs: z.number(),
  ...machineParts,
  interfaces: fact(z.array(networkInterface)),
  hardwarePorts: fact(
    z.array(
      z.object({ port: z.string(), device: z.string(), hardwareAddress: z.string().nullable() }),
    ),
  ),
  routes: fact(
    z.array(z.object({ subnet: z.string(), gateway: z.string(), interface: z.string() })),
  ),
  thunderbolt: fact(z.array(thunderboltPort)),
  rdma: z.object({
    setting: fact(z.enum(['enabled', 'disabled'])),
    deviceNames: fact(strings),
    devices: fact(z.array(rdmaDevice)),
  }),
  services: fact(z.array(networkService)),
  bridgesConfigured: fact(z.array(z.object({ name: z.string(), members: strings }))),
  internetSharing: fact(z.object({ enabled: z.boolean(), devices: strings })),
  launch: fact(z.object({ isRoot: z.boolean(), ancestors: strings })),
  runtime: fact(
    z.object({ python: z.string(), mlx: z.string(), mlxLm: z.string(), backends: strings }),
  ),
  gpus: fact(z.array(gpu)),
  unfamiliar: strings,
})

const connectOutcome = z.enum(['connected', 'refused', 'unreachable', 'timed-out'])

export const pathFacts: z.ZodType<PathFacts> = z.object({
  machine: z.string(),
  peer: z.string(),
  address: z.string(),
  port: z.number().int().nullable(),
  routeInterface: text,
  ping: flag,
  fromUs: fact(connectOutcome),
  fromSystem: fact(connectOutcome),
})
