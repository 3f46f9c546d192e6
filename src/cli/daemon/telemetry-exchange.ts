// What every machine of the cluster is doing right now, collected by the one that was asked. Ages are counted by
// the clock of the machine that took the reading: clocks differ.
import { setTimeout as sleep } from 'node:timers/promises'
import { createRealAccess } from '../../adapters/probers/access/real-access.ts'
import { createLinuxTelemetry } from '../../adapters/telemetry/linux-telemetry.ts'
import { createMacTelemetry } from '../../adapters/telemetry/mac-telemetry.ts'
import type { Telemetry } from '../../core/telemetry/telemetry.ts'
import { type Throttling, findThrottling } from '../../core/telemetry/throttling.ts'
import type { TelemetrySource } from '../../ports/telemetry.ts'
import type { Machine } from '../../runtime/machine.ts'
import type { CliContext } from '../command.ts'
import type { Settings } from '../settings.ts'
import { type Silent, askEveryPeer } from './ask-peers.ts'
import type { Peers } from './peers.ts'

export interface MachineTelemetry {
  readonly telemetry: Telemetry
  /** On the clock of that machine, when it answered. */
  readonly nowMs: number
  readonly throttling: readonly Throttling[]
}

export interface ClusterTelemetry {
  readonly machines: readonly MachineTelemetry[]
  /** Machines that could not be asked, and those that are not heard at all. */
  readonly silent: Silent
  readonly away: Silent
}

export class TelemetryExchange {
  readonly #parts: {
    machine: () => Machine
    peers: Peers
    settings: Settings
    context: CliContext
  }
  #source: TelemetrySource | null = null

  constructor(parts: {
    machine: () => Machine
    peers: Peers
    settings: Settings
    context: CliContext
  }) {
    this.#parts = parts
    parts.peers.bulk.provide({
      name: 'machine-telemetry',
      serve: async (_request, transfer) => {
        transfer.open({ sampled: await this.#sample() })
        transfer.socket.end()
      },
    })
  }

  async collect(): Promise<ClusterTelemetry> {
    const [own, { heard, silent, away }] = await Promise.all([
      this.#sample(),
      askEveryPeer(this.#parts, { service: 'machine-telemetry' }),
    ])
    const others = heard.map(({ answer }) => answer['sampled'] as MachineTelemetry)
    return { machines: [own, ...others], silent, away }
  }

  async #sample(): Promise<MachineTelemetry> {
    this.#source ??= this.#createSource()
    const sampled = await this.#source.sample()
    const telemetry = { ...sampled, machine: this.#parts.machine().state.self.name }
    const nowMs = Date.now()
    return { telemetry, nowMs, throttling: findThrottling(telemetry, nowMs) }
  }

  #createSource(): TelemetrySource {
    const { machine, settings, context } = this.#parts
    const components = {
      machine: machine().state.self.name,
      access: createRealAccess(context.env),
      nowMs: () => Date.now(),
    }
    return process.platform === 'darwin'
      ? createMacTelemetry({
          ...components,
          isRoot: process.getuid?.() === 0,
          useMacmon: settings.macmon,
        })
      : createLinuxTelemetry({ ...components, wait: (ms) => sleep(ms) })
  }
}
