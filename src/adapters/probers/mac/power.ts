// pmset: sleep, restart after a power loss, the power source and what little it says about heat.
import { type Fact, chainFact, known, mapFact, unknown } from '../../../core/machine-facts/fact.ts'
import type { PowerFacts } from '../../../core/machine-facts/machine.ts'
import { wholeLines, wholeNumber } from '../text.ts'

export function parsePowerSettings(text: string): Omit<PowerFacts, 'source'> {
  const lines = wholeLines(text)
  const setting = (name: string): Fact<string> => {
    const line = lines.find((one) => new RegExp(`^\\s*${name}\\s+\\S`).test(one))
    return line === undefined
      ? unknown('not-printed', `pmset prints no "${name}"`)
      : known(line.trim().slice(name.length).trim())
  }
  const flag = (name: string): Fact<boolean> =>
    chainFact(setting(name), (value) =>
      value === '0' || value === '1'
        ? known(value === '1')
        : unknown('not-understood', `pmset prints "${name} ${value}"`),
    )
  const sleep = setting('sleep')
  const never = flag('SleepDisabled')
  return {
    sleepMinutes:
      never.known && never.value
        ? known(0)
        : chainFact(sleep, (value) => {
            const minutes = wholeNumber(/^\d+/.exec(value)?.[0] ?? '')
            return minutes === null
              ? unknown('not-understood', `pmset prints "sleep ${value}"`)
              : known(minutes)
          }),
    sleepHeldBy: mapFact(sleep, (value) => /\(sleep prevented by (.+)\)/.exec(value)?.[1] ?? null),
    restartAfterPowerLoss: flag('autorestart'),
    lowPowerMode: flag('lowpowermode'),
  }
}

export function parsePowerSource(text: string): Fact<'mains' | 'battery'> {
  const match = /^Now drawing from '([^']+)'/m.exec(text)
  if (match?.[1] === 'AC Power') return known('mains')
  if (match?.[1] === 'Battery Power') return known('battery')
  return unknown('not-understood', `pmset -g batt answered "${text.trim().slice(0, 60)}"`)
}
