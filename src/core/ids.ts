// The names of things, branded so that a machine is never passed where a group is meant.
// An id is made only by its parser here; elsewhere the types travel as they are.

declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

export type MachineId = Branded<'machine'>
export type DeploymentId = Branded<'deployment'>
export type GroupId = Branded<'group'>
export type GenerationId = Branded<'generation'>
export type AttemptId = Branded<'attempt'>
export type ModelDigest = Branded<'model-digest'>

/** Ids travel in file names, URLs and log lines, so their alphabet is narrow. */
const idShape = /^[a-z0-9][a-z0-9._-]{0,127}$/

function parser<Id extends string>(what: string): (text: string) => Id {
  return (text) => {
    if (!idShape.test(text)) throw new InvalidIdError(what, text)
    return text as Id
  }
}

export class InvalidIdError extends Error {
  override readonly name = 'InvalidIdError'
  constructor(what: string, text: string) {
    super(`"${text.slice(0, 80)}" is not a ${what} id (lower-case letters, digits, ".", "_", "-")`)
  }
}

export const machineId: (text: string) => MachineId = parser<MachineId>('machine')
export const deploymentId: (text: string) => DeploymentId = parser<DeploymentId>('deployment')
export const groupId: (text: string) => GroupId = parser<GroupId>('group')
export const generationId: (text: string) => GenerationId = parser<GenerationId>('generation')
export const attemptId: (text: string) => AttemptId = parser<AttemptId>('attempt')
export const modelDigest: (text: string) => ModelDigest = parser<ModelDigest>('model-digest')
