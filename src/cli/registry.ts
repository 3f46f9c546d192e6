// Every command by name. Modules are loaded only when asked for: a cold start pays for one command.
import type { CommandModule } from './command.ts'

export interface CommandEntry {
  readonly summary: string
  /** Heading in --help. */
  readonly section: 'Run' | 'Models' | 'Cluster' | 'Machines' | 'Knowledge' | 'Project'
  readonly load: () => Promise<CommandModule>
}

export const registry: Readonly<Record<string, CommandEntry>> = {
  up: {
    summary: 'run the daemon in the foreground: API, page, ranks',
    section: 'Run',
    load: () => import('./commands/up.ts'),
  },
  run: {
    summary: 'ask a model from the terminal',
    section: 'Run',
    load: () => import('./commands/run.ts'),
  },
  stop: {
    summary: 'stop the daemon',
    section: 'Run',
    load: () => import('./commands/stop.ts'),
  },
  status: {
    summary: 'show machines and models at a glance',
    section: 'Run',
    load: () => import('./commands/status.ts'),
  },
  logs: {
    summary: 'show the log of the daemon',
    section: 'Run',
    load: () => import('./commands/logs.ts'),
  },
  load: {
    summary: 'make a model wanted and wait until it answers',
    section: 'Models',
    load: () => import('./commands/load.ts'),
  },
  unload: {
    summary: 'stop serving a model',
    section: 'Models',
    load: () => import('./commands/unload.ts'),
  },
  alias: {
    summary: 'give models other names, such as gpt-4o',
    section: 'Models',
    load: () => import('./commands/alias.ts'),
  },
  connect: {
    summary: 'show or write the settings of a client: claude, codex, open-webui, …',
    section: 'Run',
    load: () => import('./commands/connect.ts'),
  },
  ps: {
    summary: 'show what is served, by which ranks',
    section: 'Models',
    load: () => import('./commands/ps.ts'),
  },
  list: {
    summary: 'list the models on this machine',
    section: 'Models',
    load: () => import('./commands/list.ts'),
  },
  pull: {
    summary: 'fetch a model from the hub',
    section: 'Models',
    load: () => import('./commands/pull.ts'),
  },
  invite: {
    summary: 'make a code that lets another machine in',
    section: 'Cluster',
    load: () => import('./commands/invite.ts'),
  },
  join: {
    summary: 'bring this machine into a cluster',
    section: 'Cluster',
    load: () => import('./commands/join.ts'),
  },
  approve: {
    summary: 'let in a machine that asks',
    section: 'Cluster',
    load: () => import('./commands/approve.ts'),
  },
  machines: {
    summary: 'show the machines of the cluster; remove one',
    section: 'Cluster',
    load: () => import('./commands/machines.ts'),
  },
  links: {
    summary: 'show the links between machines, as measured',
    section: 'Cluster',
    load: () => import('./commands/links.ts'),
  },
  leave: {
    summary: 'take this machine out of its cluster',
    section: 'Cluster',
    load: () => import('./commands/leave.ts'),
  },
  explain: {
    summary: 'say what became of an answer, and why there was a pause',
    section: 'Models',
    load: () => import('./commands/explain.ts'),
  },
  drain: {
    summary: 'move everything off a machine before it is worked on',
    section: 'Cluster',
    load: () => import('./commands/drain.ts'),
  },
  plan: {
    summary: 'how a model would run on your machines, or on machines you might buy',
    section: 'Cluster',
    load: () => import('./commands/plan.ts'),
  },
  probe: {
    summary: 'measure machines and links, for better plans',
    section: 'Cluster',
    load: () => import('./commands/probe.ts'),
  },
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
  telemetry: {
    summary: 'show power, heat, load and memory of every machine',
    section: 'Machines',
    load: () => import('./commands/telemetry.ts'),
  },
  config: {
    summary: "write hostfiles for MLX's own tools from what the machines say",
    section: 'Machines',
    load: () => import('./commands/config.ts'),
  },
  launch: {
    summary: 'run an MLX program over the machines, without SSH',
    section: 'Machines',
    load: () => import('./commands/launch.ts'),
  },
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
  bench: {
    summary: 'measure Bushel beside what it is compared with',
    section: 'Project',
    load: () => import('./commands/bench.ts'),
  },
  test: {
    summary: 'run every check and test of Bushel itself',
    section: 'Project',
    load: () => import('./commands/test.ts'),
  },
  simulate: {
    summary: 'let simulated clusters live through faults, and check what Bushel promises',
    section: 'Project',
    load: () => import('./commands/simulate.ts'),
  },
  setup: {
    summary: 'prepare everything (implied by the first command)',
    section: 'Project',
    load: () => import('./commands/setup.ts'),
  },
  uninstall: {
    summary: 'remove what Bushel has put anywhere',
    section: 'Project',
    load: () => import('./commands/uninstall.ts'),
  },
  completion: {
    summary: 'print completion for bash, zsh or fish',
    section: 'Project',
    load: () => import('./commands/completion.ts'),
  },
  version: {
    summary: 'print the version of Bushel and what it runs on',
    section: 'Project',
    load: () => import('./commands/version.ts'),
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
  predict: {
    summary: 'predict the rows of a table of measurements',
    section: 'Project',
    load: () => import('./commands/predict.ts'),
  },
}
