// The part of the config that names what an interface is made of: [links.tbb] kind = "thunderbolt", gbps = 80.
import { z } from 'zod'

export const linkSettings = z.record(
  z.string(),
  z.strictObject({
    kind: z.enum(['thunderbolt', 'ethernet', 'wifi']),
    gbps: z.number().positive().optional(),
  }),
)
