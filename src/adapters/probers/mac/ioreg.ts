// ioreg property lists. The GPU's own entry gives its cores, and its load without administrator rights.
import { type Fact, chainFact, known, unknown } from '../../../core/machine-facts/fact.ts'
import { wholeLines, wholeNumber } from '../text.ts'

/** "key" = value lines of the first entry; tree drawing in front is skipped. */
export function parseIoregEntry(text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  let entries = 0
  for (const line of wholeLines(text)) {
    if (/^[\s|]*\+-o /.test(line)) entries += 1
    if (entries > 1) break
    const match = /^[\s|]*"([^"]+)" = (.*)$/.exec(line)
    if (match !== null) values.set(match[1] ?? '', match[2] ?? '')
  }
  return values
}

export interface Accelerator {
  readonly model: Fact<string>
  readonly cores: Fact<number>
  readonly loadRatio: Fact<number>
  readonly memoryInUseBytes: Fact<number>
}

export function parseAccelerator(text: string): Fact<Accelerator> {
  const values = parseIoregEntry(text)
  if (values.size === 0) return unknown('not-understood', 'ioreg lists no accelerator')
  const statistics = statisticsOf(values.get('PerformanceStatistics'))
  return known({
    model: chainFact(printed(values, 'model'), (model) => known(model.replaceAll('"', ''))),
    cores: chainFact(printed(values, 'gpu-core-count'), numberOf('gpu-core-count')),
    loadRatio: chainFact(printed(statistics, 'Device Utilization %'), (text) => {
      const percent = numberOf('Device Utilization %')(text)
      return percent.known ? known(percent.value / 100) : percent
    }),
    memoryInUseBytes: chainFact(
      printed(statistics, 'In use system memory'),
      numberOf('In use system memory'),
    ),
  })
}

/** {"Device Utilization %"=34,"In use system memory"=7688503296} */
function statisticsOf(text: string | undefined): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  if (text === undefined || !/^\{.*\}$/.test(text)) return values
  for (const match of text.matchAll(/"([^"]+)"=(\d+)(?=[,}])/g))
    values.set(match[1] ?? '', match[2] ?? '')
  return values
}

function printed(values: ReadonlyMap<string, string>, key: string): Fact<string> {
  const value = values.get(key)
  return value === undefined ? unknown('not-printed', `ioreg prints no "${key}"`) : known(value)
}

function numberOf(key: string): (text: string) => Fact<number> {
  return (text) => {
    const value = wholeNumber(text)
    return value === null
      ? unknown('not-understood', `ioreg prints "${key}" = ${text.slice(0, 40)}`)
      : known(value)
  }
}
