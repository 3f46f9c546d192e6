// Every command by name. Modules are loaded only when asked for: a cold start pays for one command.
import type { CommandModule } from './command.ts'

export interface CommandEntry {
  readonly summary: string
  /** Heading in --help. */
  readonly section: 'Run' | 'Models' | 'Cluster' | 'Machines' | 'Knowledge' | 'Project'
  readonly load: () => Promise<CommandModule>
}

export const registry: Readonly<Record<string, CommandEntry>> = {
  kb: {
    summary: 'ask the knowledge base about distributed computing on Macs',
    section: 'Knowledge',
    load: () => import('./commands/kb.ts'),
  },
  mcp: {
    summary: 'serve the knowledge base and the cluster to agents (MCP)',
    section: 'Knowledge',
    load: () => import('./commands/mcp.ts'),
  },
  version: {
    summary: 'print the version of Bushel and what it runs on',
    section: 'Project',
    load: () => import('./commands/version.ts'),
  },
}
