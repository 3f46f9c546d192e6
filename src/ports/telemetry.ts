// Samples what the machine is doing. A source that is missing, refused or silent leaves its readings unknown.
import type { Telemetry } from '../core/telemetry/telemetry.ts'

export interface TelemetrySource {
  sample(): Promise<Telemetry>
}
