// What every question takes from around the request.
import type { ModelRef } from '../core/cluster/group-plan.ts'
import type { JsonValue } from '../core/json.ts'
import type { GatewayContext, GatewayParts } from './context.ts'
import { findTalker } from './find-model.ts'
import { freshSeed } from './sampling.ts'

export interface QuestionSource {
  readonly model: ModelRef
  /** Used when the client names none. */
  readonly seed: string
  readonly nowMs: number
  readonly cacheScope: string
}

/** Throws when there is no such model, or it does not talk. */
export function questionSource(
  c: GatewayContext,
  parts: GatewayParts,
  name: string,
): QuestionSource {
  return {
    model: findTalker(parts, name).model,
    nowMs: parts.wallMs(),
    seed: freshSeed(parts.randomHex),
    cacheScope: c.get('caller').scope,
  }
}

/** Templates know thinking as a switch (Qwen, GLM) or as an effort (gpt-oss); those that know neither ignore both. */
export function effortVariables(effort: string | null | undefined): Record<string, JsonValue> {
  if (effort == null) return {}
  if (effort === 'none') return { enable_thinking: false }
  return { enable_thinking: true, reasoning_effort: effort === 'minimal' ? 'low' : effort }
}
