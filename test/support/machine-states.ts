// Small clusters as values, for tests of the core: machines, models, wishes, and the state of one machine.
import type { Deployment } from '../../src/core/cluster/desired.ts'
import { registerKeys } from '../../src/core/cluster/desired.ts'
import { type GroupPlan, type ModelRef, freelyCut } from '../../src/core/cluster/group-plan.ts'
import type { Heartbeat } from '../../src/core/cluster/messages.ts'
import type { MachineRecord } from '../../src/core/cluster/record.ts'
import type { Register, Registers } from '../../src/core/cluster/registers.ts'
import {
  type MachineState,
  type SelfState,
  initialState,
  ownRecord,
} from '../../src/core/cluster/state.ts'
import type { Effect } from '../../src/core/effects.ts'
import {
  type GroupId,
  type MachineId,
  deploymentId,
  groupId,
  machineId,
  modelDigest,
} from '../../src/core/ids.ts'
import type { JsonValue } from '../../src/core/json.ts'
import type { MachineInput } from '../../src/core/machine/inputs.ts'
import { stepMachine } from '../../src/core/machine/step.ts'

export const [a, b, c] = ['aaaa', 'bbbb', 'cccc'].map((text) => machineId(text.repeat(8))) as [
  MachineId,
  MachineId,
  MachineId,
]

export const tinyModel: ModelRef = {
  name: 'tiny',
  digest: modelDigest('d1'),
  architecture: 'llama',
  layers: 24,
  weightsBytes: 1e9,
  parameters: 5e8,
  kvBytesPerToken: 1000,
  contextTokens: 4096,
  defaults: {},
  cut: freelyCut,
}

export function selfOf(id: MachineId, change: Partial<SelfState> = {}): SelfState {
  return {
    id,
    name: id.slice(0, 1),
    role: 'always',
    boot: `boot-${id.slice(0, 1)}`,
    incarnation: 10,
    revision: 1,
    version: '1.0.0',
    platform: 'test',
    computesIn: 'stored',
    memoryLendBytes: 8e9,
    models: [tinyModel],
    accepts: { ok: true, reason: '' },
    ...change,
  }
}

export function deploymentOf(change: Partial<Deployment> = {}): Deployment {
  return {
    id: deploymentId('tiny'),
    model: tinyModel,
    strategy: 'auto',
    machines: [],
    layers: [],
    backend: 'auto',
    replicas: 1,
    standby: false,
    contextTokens: 4096,
    keepAliveMs: null,
    ...change,
  }
}

export function register(value: unknown, counter = 1, machine: MachineId = a): Register {
  return { version: { counter, machine, boot: 'first' }, value: value as JsonValue | undefined }
}

/** Everybody's first roster. */
export function rosterOf(...machines: readonly MachineId[]): Map<string, Register> {
  return new Map(
    machines.map((machine, index) => [
      registerKeys.roster(machine, 'first'),
      register({ machine, name: machine.slice(0, 1), publicKey: '', addresses: [] }, index + 1),
    ]),
  )
}

export function wishes(...deployments: readonly Deployment[]): Map<string, Register> {
  return new Map(
    deployments.map((deployment, index) => [
      registerKeys.deployment(deployment.id),
      register(deployment, 100 + index),
    ]),
  )
}

export function beatOf(id: MachineId, change: Partial<Heartbeat> = {}): Heartbeat {
  return {
    boot: `boot-${id.slice(0, 1)}`,
    incarnation: 10,
    revision: 1,
    digest: 'x',
    epoch: { counter: 0, machine: a },
    role: 'always',
    hears: [a, b, c].filter((other) => other !== id),
    follows: null,
    ...change,
  }
}

export function planOf(
  machines: readonly MachineId[],
  change: Partial<GroupPlan> = {},
  memoryBytes = 2e9,
): GroupPlan {
  const share = 24 / machines.length
  return {
    group: groupId('g1'),
    formation: 0,
    deployment: deploymentId('tiny'),
    model: tinyModel,
    strategy: machines.length > 1 ? 'pipeline' : 'single',
    contextTokens: 4096,
    stages: machines.map((machine, index) => ({
      layers: [index * share, (index + 1) * share] as const,
      ranks: [{ machine, memoryBytes, share: 1 }],
      backend: 'none' as const,
      worldStrategy: 'none' as const,
    })),
    ...change,
  }
}

/** One machine whose turns are taken by hand: inputs in, effects out, time as told. */
export class HandDriven {
  state: MachineState
  nowMs: number
  effects: readonly Effect[] = []

  constructor(self: SelfState, registers: Registers = new Map(), nowMs = 1000) {
    this.nowMs = nowMs
    this.state = initialState(self, { registers, nowMs })
  }

  give(input: MachineInput): readonly Effect[] {
    const moment = { nowMs: this.nowMs, entropy: 'e'.repeat(32) }
    const { state, effects } = stepMachine(this.state, input, moment)
    this.state = state
    this.effects = effects
    return effects
  }

  /** Ticks every quarter of a second; everything it wanted done comes back. */
  pass(ms: number, each: () => void = () => undefined): readonly Effect[] {
    const all: Effect[] = []
    for (let passed = 0; passed < ms; passed += 250) {
      this.nowMs += 250
      each()
      all.push(...this.give({ kind: 'tick', lagMs: 0, progress: [] }))
    }
    return all
  }

  hear(from: MachineId, change: Partial<Heartbeat> = {}): readonly Effect[] {
    const beat = beatOf(from, { digest: this.state.registersDigest, ...change })
    return this.give({ kind: 'heartbeat', from, link: 'ethernet', beat })
  }

  /** Another machine beats and has said what it is. */
  meet(id: MachineId, change: Partial<SelfState> = {}): void {
    this.hear(id)
    this.give({
      kind: 'message',
      from: id,
      message: { kind: 'record', record: recordOf(id, change) },
    })
  }
}

export function recordOf(id: MachineId, change: Partial<SelfState> = {}): MachineRecord {
  return ownRecord(initialState(selfOf(id, change), { nowMs: 0 }))
}

export function sentTo(effects: readonly Effect[], to: MachineId): readonly string[] {
  return effects.flatMap((effect) =>
    effect.kind === 'message-send' && effect.to === to ? [effect.message.kind] : [],
  )
}

export function kindsOf(effects: readonly Effect[]): readonly string[] {
  return effects.map((effect) => effect.kind)
}

export function group(name: string): GroupId {
  return groupId(name)
}
