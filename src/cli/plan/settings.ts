// What electricity and machines cost here: settings of the person, never guessed. Read from
// planner.toml in Bushel's home; without it no price is shown.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'smol-toml'
import { z } from 'zod'
import type { PlanPrices } from '../../core/plan/types.ts'
import { UserError } from '../command.ts'
import { homeDir } from '../settings.ts'

const settings = z.strictObject({
  currency: z.string().min(1).default('EUR'),
  electricity_per_kwh: z.number().nonnegative(),
  years_of_use: z.number().positive().default(4),
  /** Price by chip and memory, such as "M3Ultra-512", or by machine name. */
  machine_prices: z.record(z.string(), z.number().nonnegative()).optional(),
})

export function readPrices(env: Readonly<Record<string, string | undefined>>): PlanPrices | null {
  const path = join(homeDir(env), 'planner.toml')
  if (!existsSync(path)) return null
  let raw: unknown
  try {
    raw = parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new UserError(
      `${path} is not TOML: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  const parsed = settings.safeParse(raw)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw new UserError(
      `${path}: ${issue?.path.join('.') ?? ''} ${issue?.message ?? 'is wrong'}; docs/planner.md shows an example`,
    )
  }
  const { machine_prices: machinePrices, ...rest } = parsed.data
  const price = (key: string): number | undefined =>
    Object.entries(machinePrices ?? {}).find(
      ([name]) => name.toLowerCase() === key.toLowerCase(),
    )?.[1]
  return {
    currency: rest.currency,
    perKilowattHour: rest.electricity_per_kwh,
    yearsOfUse: rest.years_of_use,
    machinePrice:
      machinePrices === undefined
        ? null
        : (machine) => {
            const gigabytes =
              machine.chip === null
                ? 0
                : Math.round(machine.memoryFreeBytes / machine.chip.memoryShareUsable / 2 ** 30)
            return (
              price(machine.name) ??
              price(`${machine.chip?.key ?? ''}-${gigabytes}`) ??
              price(machine.chip?.key ?? '') ??
              null
            )
          },
  }
}
