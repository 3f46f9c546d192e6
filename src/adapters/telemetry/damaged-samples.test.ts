// Every telemetry capture cut short and damaged: no crash, and nothing said that is not there.
import { test } from 'node:test'
import { toolCapture } from '../../../test/support/captures.ts'
import { assertCutsClaimNothingNew, assertGarbageIsSurvived } from '../../../test/support/claims.ts'
import { parseMacmon } from './macmon.ts'
import { parseThermalLimits } from './pmset-therm.ts'
import { parsePowermetricsPlist, parsePowermetricsText } from './powermetrics.ts'

const samplers: readonly (readonly [string, (text: string) => unknown])[] = [
  [
    'powermetrics.macbookpro-m4max.cpu-gpu-thermal.macos26.2.trimmed.plist',
    (all) => parsePowermetricsPlist(all, 0),
  ],
  [
    'powermetrics.macbookpro-m4pro.gpu_power.five-samples-nul-separated.trimmed.plist',
    (all) => parsePowermetricsPlist(all, 0),
  ],
  ['powermetrics.macbookpro-m4max.thermal.trimmed.plist', (all) => parsePowermetricsPlist(all, 0)],
  ['powermetrics.m4-14core.cpu-gpu.macos26.txt', (all) => parsePowermetricsText(all, 0)],
  [
    'powermetrics.macbookair-m2.cpu-thermal.two-blocks.macos26.2.trimmed.txt',
    (all) => parsePowermetricsText(all, 0),
  ],
  ['powermetrics.m5pro.cpu-gpu.excerpt.txt', (all) => parsePowermetricsText(all, 0)],
  ['powermetrics.macstudio-m3ultra.lines.excerpt.txt', (all) => parsePowermetricsText(all, 0)],
  ['macmon-pipe.pre-0.6.two-lines.jsonl', (all) => parseMacmon(all, 0)],
  ['macmon-pipe.0.6-0.7.readme-example.jsonl', (all) => parseMacmon(all, 0)],
  ['macmon-pipe.0.8.readme-example.jsonl', (all) => parseMacmon(all, 0)],
  ['pmset-g-therm.with-cpu-power-notify.txt', (all) => parseThermalLimits(all, 0)],
]
for (const [name, parse] of samplers)
  test(`the parser of ${name} claims nothing new when it is cut short or damaged`, () => {
    const whole = toolCapture(name)
    const ended = whole.endsWith('\n') ? whole : `${whole}\n`
    assertCutsClaimNothingNew(ended, parse)
    assertGarbageIsSurvived(ended, parse)
  })
