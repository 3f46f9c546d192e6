// ifconfig → interfaces. Labels and kinds come later, from networksetup.
import { type Fact, known, unknown } from '../../../core/machine-facts/fact.ts'
import { type Ipv4Address, prefixLengthOfHexMask } from '../../../core/machine-facts/ipv4.ts'
import type { NetworkInterface } from '../../../core/machine-facts/network.ts'
import { wholeLines } from '../text.ts'

interface Block {
  readonly name: string
  readonly mtu: number | null
  readonly lines: string[]
}

export function parseIfconfig(text: string): Fact<readonly NetworkInterface[]> {
  const blocks: Block[] = []
  for (const line of wholeLines(text)) {
    const header = /^([A-Za-z0-9_.]+): flags=[0-9a-f]+<[^>]*>(?: mtu (\d+))?/.exec(line)
    if (header !== null)
      blocks.push({
        name: header[1] ?? '',
        mtu: header[2] === undefined ? null : Number(header[2]),
        lines: [],
      })
    else if (/^\s/.test(line)) blocks.at(-1)?.lines.push(line.trim())
  }
  if (blocks.length === 0)
    return unknown('not-understood', 'the output of ifconfig names no interface')
  return known(blocks.map((block, index) => interfaceOf(block, index === blocks.length - 1)))
}

function interfaceOf(block: Block, isLast: boolean): NetworkInterface {
  const pick = (pattern: RegExp): readonly string[] =>
    block.lines.flatMap((line) => pattern.exec(line)?.[1] ?? [])
  const status = pick(/^status: (\S+)$/)[0]
  const media = pick(/^media: (.+)$/)[0]
  return {
    name: block.name,
    kind: 'unknown',
    kindFrom: 'system',
    label: null,
    hardwareAddress: pick(/^ether ([0-9a-f:]{17})$/)[0] ?? null,
    ipv4: block.lines.flatMap(ipv4OfLine),
    ipv6: pick(/^inet6 ([0-9a-f:.]+)/),
    mtu: block.mtu,
    active:
      status === undefined
        ? unknown('not-printed', `ifconfig prints no status for ${block.name}`)
        : known(status === 'active'),
    speedMbps: speedOfMedia(block.name, media),
    duplex: duplexOfMedia(block.name, media),
    members: pick(/^member: (\S+) flags=/),
    // The status is the last line of a block: with it, or with another block after, nothing is lost.
    complete: !isLast || status !== undefined,
  }
}

function ipv4OfLine(line: string): readonly Ipv4Address[] {
  const match = /^inet ([0-9.]+)(?: --> [0-9.]+)? netmask (0x[0-9a-f]+)/.exec(line)
  const prefixLength = prefixLengthOfHexMask(match?.[2] ?? '')
  return match === null || prefixLength === null ? [] : [{ address: match[1] ?? '', prefixLength }]
}

/** "1000baseT" and "10Gbase-T" name a speed; Thunderbolt and Wi-Fi print only "autoselect". */
function speedOfMedia(name: string, media: string | undefined): Fact<number> {
  const match = /(\d+)(G)?base/i.exec(media ?? '')
  if (match === null) return unknown('not-printed', `ifconfig prints no speed for ${name}`)
  return known(Number(match[1]) * (match[2] === undefined ? 1 : 1000))
}

function duplexOfMedia(name: string, media: string | undefined): Fact<'full' | 'half'> {
  const match = /<[^>]*(full|half)-duplex/.exec(media ?? '')
  return match === null
    ? unknown('not-printed', `ifconfig prints no duplex for ${name}`)
    : known(match[1] as 'full' | 'half')
}
