// Every command by name. Modules are loaded only when asked for: a cold start pays for one command.
import type { CommandModule } from './command.ts'

export interface CommandEntry {
  readonly summary: string
  /** Heading in --help. */
  readonly section: 'Run' | 'Models' | 'Cluster' | 'Machines' | 'Knowledge' | 'Project'
  readonly load: () => Promise<CommandModule>
}

export const registry: Readonly<Record<string, CommandEntry>> = {
  topology: {
    summary: 'show who is cabled to whom, and which shapes that allows',
    section: 'Machines',
    load: () => import('./commands/topology.ts'),
  },
  doctor: {
    summary: 'say what is wrong with machines and cables, and the next step',
    section: 'Machines',
    load: () => import('./commands/doctor.ts'),
  },
  config: {
    summary: "write hostfiles for MLX's own tools from what the machines say",
    section: 'Machines',
    load: () => import('./commands/config.ts'),
  },
  selftest: {
    summary: 'try what this machine can do, and write a redacted file to send us',
    section: 'Project',
    load: () => import('./commands/selftest.ts'),
  },
  fixtures: {
    summary: 'turn self-test files into captures for tests',
    section: 'Project',
    load: () => import('./commands/fixtures.ts'),
  },
  version: {
    summary: 'print the version of Bushel and what it runs on',
    section: 'Project',
    load: () => import('./commands/version.ts'),
  },
}
