// What travels for "bushel launch": from the command line to its daemon, between daemons, and back.
import { z } from 'zod'
import { launchLimits } from '../core/launch/limits.ts'
import { pathFault } from '../core/launch/paths.ts'

const relativePath = z
  .string()
  .max(launchLimits.pathCharsMax)
  .refine((path) => pathFault(path) === null, {
    error: 'is no plain path inside the folder',
  })

/** Names that could make another program run are the script's own affair, but no control characters. */
const variableName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is no name of a variable')
const base64 = z.string().max(launchLimits.partBytesMax * 2)

/** One piece of a file of the script's folder; pieces of one file follow each other. */
export const launchFilePart = z.object({
  kind: z.literal('file'),
  path: relativePath,
  executable: z.boolean(),
  data: base64,
})

export const launchRequest = z.object({
  kind: z.literal('launch'),
  machines: z.array(z.string().min(1)).max(64),
  backend: z.enum(['auto', 'ring', 'jaccl', 'jaccl-ring', 'nccl']),
  script: relativePath,
  args: z.array(z.string()).max(launchLimits.argumentsMax),
  env: z.record(variableName, z.string()),
  files: z.number().int().min(1).max(launchLimits.filesMax),
  bytes: z.number().int().min(0),
})

/** Signals by number, since the two systems do not number all of them alike: only those they share. */
export const launchSignals = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGTERM: 15 } as const
const signalName = z.enum(['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'])

export const launchInput = z.union([
  z.object({ signal: signalName }),
  z.object({ stdin: base64 }),
  z.object({ stdinEnd: z.literal(true) }),
])

const worldFile = z.object({ variable: variableName, content: z.string() })

/** To the machine that runs one rank. */
export const toLaunchedRank = z.discriminatedUnion('kind', [
  launchFilePart,
  /** Where the rank before this one, on that machine, will reach it. */
  z.object({ kind: z.literal('reserve'), facing: z.string(), address: z.string().nullable() }),
  z.object({
    kind: z.literal('start'),
    script: relativePath,
    args: z.array(z.string()).max(launchLimits.argumentsMax),
    env: z.record(variableName, z.string()),
    unset: z.array(variableName),
    files: z.array(worldFile),
    hasInput: z.boolean(),
  }),
  z.object({ kind: z.literal('stdin'), data: base64 }),
  z.object({ kind: z.literal('stdin-end') }),
  z.object({ kind: z.literal('signal'), signal: signalName }),
  z.object({ kind: z.literal('stop') }),
  z.object({ kind: z.literal('alive') }),
])

const stream = z.enum(['stdout', 'stderr'])

export const fromLaunchedRank = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('reserved'),
    host: z.string(),
    port: z.number().int().min(1).max(65535),
  }),
  z.object({ kind: z.literal('started'), pid: z.number().int() }),
  z.object({ kind: z.literal('output'), stream, data: z.string() }),
  /** The last piece of input was read; the next one may come. Signals wait for nobody. */
  z.object({ kind: z.literal('stdin-taken') }),
  z.object({
    kind: z.literal('exited'),
    code: z.number().int(),
    signal: z.number().int(),
  }),
  /** It could not do what was asked; nothing runs there. */
  z.object({ kind: z.literal('failed'), reason: z.string() }),
  z.object({ kind: z.literal('alive') }),
])

/** To the command line, one line each. */
export const toLaunchClient = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('accepted'), id: z.string() }),
  z.object({
    kind: z.literal('world'),
    backend: z.string(),
    why: z.string(),
    /** Machines by rank. */
    machines: z.array(z.string()),
  }),
  z.object({ kind: z.literal('output'), rank: z.number().int(), stream, data: z.string() }),
  z.object({ kind: z.literal('refused'), reason: z.string() }),
  /** Nothing new: it keeps the connection from being taken for a forgotten one. */
  z.object({ kind: z.literal('alive') }),
  z.object({
    kind: z.literal('ended'),
    code: z.number().int(),
    cause: z.string(),
    ranks: z.array(z.object({ rank: z.number(), machine: z.string(), end: z.string() })),
  }),
])

export type LaunchRequest = z.infer<typeof launchRequest>
export type LaunchInput = z.infer<typeof launchInput>
export type LaunchFilePart = z.infer<typeof launchFilePart>
export type ToLaunchedRank = z.infer<typeof toLaunchedRank>
export type FromLaunchedRank = z.infer<typeof fromLaunchedRank>
export type ToLaunchClient = z.infer<typeof toLaunchClient>
