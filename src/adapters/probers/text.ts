// Small readers shared by the parsers of tool output.
import { type Fact, known, unknown } from '../../core/machine-facts/fact.ts'

/**
 * Lines that were printed to their end. A last line without a newline may have lost its tail
 * ("en1" of "en10"), so it is left out rather than believed.
 */
export function wholeLines(text: string): readonly string[] {
  const lines = text.split(/\r?\n/)
  lines.pop()
  return lines
}

export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json }
export type JsonObject = { readonly [key: string]: Json }

export function parseJson(command: string, text: string): Fact<Json> {
  try {
    return known(JSON.parse(text) as Json)
  } catch {
    return unknown('not-understood', `the output of ${command} is not whole JSON`)
  }
}

export function asObject(value: Json | undefined): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : null
}

export function asArray(value: Json | undefined): readonly Json[] | null {
  return Array.isArray(value) ? (value as readonly Json[]) : null
}

export function stringFact(object: JsonObject, key: string): Fact<string> {
  const value = object[key]
  return typeof value === 'string' && value !== ''
    ? known(value)
    : unknown('not-printed', `"${key}" is not in the output`)
}

/** A whole number written as digits; anything else is not a number. */
export function wholeNumber(text: string): number | null {
  if (!/^\d+$/.test(text)) return null
  const value = Number(text)
  return Number.isSafeInteger(value) ? value : null
}
