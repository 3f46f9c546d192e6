// Every command by name. Modules are loaded only when asked for: a cold start pays for one command.
import type { CommandModule } from './command.ts'

export interface CommandEntry {
  readonly summary: string
  /** Heading in --help. */
  readonly section: 'Run' | 'Models' | 'Cluster' | 'Machines' | 'Knowledge' | 'Project'
  readonly load: () => Promise<CommandModule>
}

export const registry: Readonly<Record<string, CommandEntry>> = {
  plan: {
    summary: 'how a model would run on your machines, or on machines you might buy',
    section: 'Cluster',
    load: () => import('./commands/plan.ts'),
  },
  predict: {
    summary: 'predict the rows of a table of measurements',
    section: 'Project',
    load: () => import('./commands/predict.ts'),
  },
  version: {
    summary: 'print the version of Bushel and what it runs on',
    section: 'Project',
    load: () => import('./commands/version.ts'),
  },
}
