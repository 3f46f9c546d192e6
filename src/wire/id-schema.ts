// Ids at the edge: a broken id is an issue of the message, not an exception.
import { z } from 'zod'
import { InvalidIdError, deploymentId, groupId, machineId, modelDigest } from '../core/ids.ts'

function idSchema<Id extends string>(
  parse: (text: string) => Id,
): z.ZodPipe<z.ZodString, z.ZodTransform<Id, string>> {
  return z.string().transform((text, context): Id => {
    try {
      return parse(text)
    } catch (error) {
      const message = error instanceof InvalidIdError ? error.message : 'no id'
      context.addIssue({ code: 'custom', message })
      return z.NEVER
    }
  })
}

export const machineSchema = idSchema(machineId)
export const deploymentSchema = idSchema(deploymentId)
export const groupSchema = idSchema(groupId)
export const digestSchema = idSchema(modelDigest)
