// Linux and NVIDIA: what keeps a machine from lending what it seems to have.
import { formatBytes } from '../../units.ts'
import {
  type Check,
  type DoctorInput,
  type Observation,
  cannotTell,
  judge,
  pass,
} from '../finding.ts'

const linux = (input: DoctorInput) => input.machines.filter((facts) => facts.platform === 'linux')

/** Below this a link carries less than a single disk. */
const slowLinkMbps = 1000
/** More than a tenth of a GPU held by others changes what fits on it. */
const heldShareMax = 0.1

export const linuxMemoryCheck: Check = {
  id: 'linux-memory',
  number: 31,
  title: 'control groups leave the machine its memory and cores',
  cites: [],
  after: [],
  examine: (input) =>
    linux(input).flatMap((facts) => {
      const { totalBytes, groupLimitBytes, groupCpus } = facts.memory
      if (!groupLimitBytes.known) return [cannotTell(facts.name, groupLimitBytes.why)]
      const limit = groupLimitBytes.value
      const cpus = groupCpus.known ? groupCpus.value : null
      const found: Observation[] = []
      if (limit !== null && totalBytes.known && limit < totalBytes.value)
        found.push({
          machines: [facts.name],
          level: 'warn',
          evidence: `${facts.name} has ${formatBytes(totalBytes.value)}, but its control group allows ${formatBytes(limit)}`,
          next: 'Raise the limit of the container or service, or accept that no more is lent.',
        })
      if (cpus !== null && facts.hardware.cpuCores.known && cpus < facts.hardware.cpuCores.value)
        found.push({
          machines: [facts.name],
          level: 'warn',
          evidence: `${facts.name} has ${facts.hardware.cpuCores.value} cores, but its control group allows ${cpus}`,
          next: 'Raise the limit of the container or service, or accept that no more is lent.',
        })
      return found.length > 0
        ? found
        : [pass([facts.name], `no control group limits ${facts.name}`)]
    }),
}

export const linuxLinksCheck: Check = {
  id: 'linux-links',
  number: 32,
  title: 'network links are up and fast',
  cites: ['kb#2060'],
  after: [],
  examine: (input) =>
    linux(input).flatMap((facts) => {
      if (!facts.interfaces.known) return [cannotTell(facts.name, facts.interfaces.why)]
      const physical = facts.interfaces.value.filter(
        (one) => one.kind === 'ethernet' || one.kind === 'thunderbolt',
      )
      return physical
        .filter((one) => !(one.active.known && !one.active.value))
        .map((one) => {
          const at = `${one.name} of ${facts.name}`
          if (one.duplex.known && one.duplex.value === 'half')
            return {
              machines: [facts.name],
              level: 'fail' as const,
              evidence: `${at} runs half duplex`,
              next: 'Replace the cable, and let both ends negotiate by themselves.',
            }
          if (one.speedMbps.known && one.speedMbps.value < slowLinkMbps)
            return {
              machines: [facts.name],
              level: 'warn' as const,
              evidence: `${at} runs at ${one.speedMbps.value} Mb/s`,
              next: 'Replace the cable (a broken pair limits Ethernet to 100 Mb/s), or look at the switch port.',
            }
          return pass(
            [facts.name],
            one.speedMbps.known
              ? `${at} runs at ${one.speedMbps.value} Mb/s`
              : `${at} is up; its speed is not told`,
          )
        })
    }),
}

export const linuxRuntimeCheck: Check = {
  id: 'linux-runtime',
  number: 33,
  title: 'Python and MLX are installed',
  cites: [],
  after: [],
  examine: (input) =>
    linux(input).map((facts) =>
      judge(facts.name, facts.runtime, (runtime) =>
        runtime.backends.includes('ring')
          ? pass([facts.name], `MLX ${runtime.mlx} on ${facts.name}`)
          : {
              machines: [facts.name],
              level: 'fail',
              evidence: `MLX ${runtime.mlx} on ${facts.name} holds no ring backend`,
              next: `Run "bushel setup" on ${facts.name} again.`,
            },
      ),
    ),
}

export const nvidiaDriverCheck: Check = {
  id: 'nvidia-driver',
  number: 34,
  title: 'the NVIDIA driver answers',
  cites: [],
  after: [],
  examine: (input) =>
    linux(input).flatMap((facts) => {
      if (facts.gpus.known)
        return facts.gpus.value.map((gpu) =>
          pass(
            [facts.name],
            `${gpu.name} on ${facts.name}, driver ${gpu.driver.known ? gpu.driver.value : 'not told'}`,
          ),
        )
      if (facts.gpus.why.kind === 'not-captured') return []
      return [
        {
          machines: [facts.name],
          level: 'fail' as const,
          evidence: `${facts.name}: ${facts.gpus.why.detail}`,
          next: 'Run "nvidia-smi" by hand; after a driver update the machine has to restart.',
        },
      ]
    }),
}

export const nvidiaMemoryCheck: Check = {
  id: 'nvidia-memory',
  number: 35,
  title: 'the memory of the GPU is free',
  cites: ['kb#2102'],
  after: ['nvidia-driver'],
  examine: (input) =>
    linux(input).flatMap((facts) =>
      facts.gpus.known
        ? facts.gpus.value.map((gpu): Observation => {
            if (gpu.unifiedMemory)
              return pass(
                [facts.name],
                `${gpu.name} on ${facts.name} shares the memory of the machine`,
              )
            const { memoryTotalBytes: total, memoryFreeBytes: free } = gpu
            if (!total.known || !free.known)
              return cannotTell(facts.name, {
                kind: 'not-printed',
                detail: `the driver does not tell the memory of ${gpu.name}`,
              })
            const held = total.value - free.value
            return held <= total.value * heldShareMax
              ? pass(
                  [facts.name],
                  `${formatBytes(free.value)} of ${formatBytes(total.value)} are free on ${gpu.name}`,
                )
              : {
                  machines: [facts.name],
                  level: 'warn',
                  evidence: `other programs hold ${formatBytes(held)} of ${formatBytes(total.value)} on ${gpu.name} of ${facts.name}`,
                  next: 'Run "nvidia-smi" to see who holds it, and end what is not needed.',
                }
          })
        : [],
    ),
}

export const nvidiaRuntimeCheck: Check = {
  id: 'nvidia-runtime',
  number: 36,
  title: 'MLX uses the GPU',
  cites: ['kb#2103'],
  after: ['nvidia-driver', 'linux-runtime'],
  examine: (input) =>
    linux(input).flatMap((facts) => {
      if (!facts.gpus.known || facts.gpus.value.length === 0 || !facts.runtime.known) return []
      // NCCL comes only with MLX's CUDA packages, so it tells them from the CPU one.
      return facts.runtime.value.backends.includes('nccl')
        ? [pass([facts.name], `MLX ${facts.runtime.value.mlx} on ${facts.name} is a CUDA build`)]
        : [
            {
              machines: [facts.name],
              level: 'warn' as const,
              evidence: `MLX ${facts.runtime.value.mlx} on ${facts.name} is a CPU build although there is a GPU`,
              next: `Install the CUDA build of MLX on ${facts.name} to use its GPU.`,
            },
          ]
    }),
}
