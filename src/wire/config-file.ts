// The keys of config.toml. Unknown keys are named, not ignored: a typo should not look like a setting.
import { z } from 'zod'
import { linkSettings } from './link-settings.ts'

export const configFile = z.strictObject({
  name: z.string().min(1).max(63).optional(),
  port: z.number().int().min(1).max(65534).optional(),
  listen: z.string().optional(),
  role: z.enum(['always', 'sometimes', 'client']).optional(),
  memory: z.string().optional(),
  model: z.string().optional(),
  api_key: z.string().min(8).optional(),
  allowed_hosts: z.array(z.string()).optional(),
  log_level: z.enum(['debug', 'info', 'warn', 'error']).optional(),
  peers: z.array(z.string()).optional(),
  discovery: z.enum(['on', 'off']).optional(),
  /** Other machines of the cluster may run programs here ("bushel launch"). */
  allow_launch: z.boolean().optional(),
  /** Links are measured for a second when they come up. */
  measure_links: z.enum(['on', 'off']).optional(),
  /** Ask macmon for power and heat too; beside MLX it is reported to crash it. */
  macmon: z.boolean().optional(),
  /** How long a model that a request loaded stays after its last use, such as "30m"; "-1" keeps it. */
  keep_alive: z.string().optional(),
  /** Answer Ollama's clients on this port too; 11434 is where they look. */
  ollama_port: z.number().int().min(1).max(65535).optional(),
  /** What a link is, where the operating system does not say: interface name to kind. */
  links: linkSettings.optional(),
})

export type ConfigFile = z.infer<typeof configFile>
