// The count of failed starts on disk, with the boot that it belongs to.
import { z } from 'zod'

export const failedStartsFile = z.object({
  bootMs: z.number(),
  failed: z.number().int().nonnegative(),
})
