// rdma_ctl, ibv_devices and ibv_devinfo.
import { type Fact, chainFact, known, unknown } from '../../../core/machine-facts/fact.ts'
import type { Gid, RdmaDevice } from '../../../core/machine-facts/rdma.ts'
import type { CommandOutcome } from '../../../ports/machine-access.ts'
import { textOf } from '../outcome.ts'
import { wholeLines, wholeNumber } from '../text.ts'

export function parseRdmaSetting(text: string): Fact<'enabled' | 'disabled'> {
  const word = text.trim()
  if (word === 'enabled' || word === 'disabled') return known(word)
  return unknown('not-understood', `rdma_ctl answered "${word.slice(0, 60)}"`)
}

/** Columns mix tabs and spaces, the order is arbitrary, and a header alone means no device. */
export function parseIbvDevices(text: string): Fact<readonly string[]> {
  const lines = wholeLines(text)
  if (!lines.some((line) => /^\s*device\s+node GUID\s*$/.test(line)))
    return unknown('not-understood', 'the output of ibv_devices has no header that Bushel knows')
  return known(
    lines.flatMap((line) => {
      const match = /^\s*(\S+)\s+[0-9a-f]{16}\s*$/i.exec(line)
      return match?.[1] === undefined ? [] : [match[1]]
    }),
  )
}

/** A machine without devices may answer in words, on either stream, with or without an error code. */
export function rdmaDevicesOf(outcome: CommandOutcome): Fact<readonly RdmaDevice[]> {
  if (
    outcome.kind === 'exited' &&
    /No IB devices found/.test(`${outcome.stdout}\n${outcome.stderr}`)
  )
    return known([])
  return chainFact(textOf('ibv_devinfo', outcome), parseIbvDevinfo)
}

export function parseIbvDevinfo(text: string): Fact<readonly RdmaDevice[]> {
  if (/^No IB devices found$/m.test(text)) return known([])
  const blocks: { name: string; lines: string[]; closed: boolean }[] = []
  let open: (typeof blocks)[number] | undefined
  for (const line of wholeLines(text)) {
    const name = /^hca_id:\s*(\S+)\s*$/.exec(line)?.[1]
    if (name !== undefined || line.trim() === '') {
      if (open !== undefined) open.closed = true
      open = undefined
    }
    if (name !== undefined) {
      open = { name, lines: [], closed: false }
      blocks.push(open)
    } else open?.lines.push(line.trim())
  }
  if (blocks.length === 0)
    return unknown('not-understood', 'the output of ibv_devinfo names no device')
  return known(blocks.map(deviceOfBlock))
}

function deviceOfBlock(block: {
  readonly name: string
  readonly lines: readonly string[]
  readonly closed: boolean
}): RdmaDevice {
  const values = new Map<string, string>()
  const gids: Gid[] = []
  for (const line of block.lines) {
    // Indexes are padded with spaces: "GID[  1]:".
    const gid = /^GID\[\s*(\d+)\]:\s*(\S+)/.exec(line)
    if (gid !== null) gids.push({ index: Number(gid[1]), address: gid[2] ?? '' })
    const pair = /^([a-z_]+):\s+(\S.*)$/.exec(line)
    if (pair !== null) values.set(pair[1] ?? '', (pair[2] ?? '').trim())
  }
  return {
    name: block.name,
    nodeGuid: valueOf(values, 'node_guid'),
    portState: chainFact(valueOf(values, 'state'), portStateOf),
    portLid: numberOf(values, 'port_lid'),
    queuePairsMax: numberOf(values, 'max_qp'),
    memoryRegionsMax: numberOf(values, 'max_mr'),
    gids,
    gidsComplete: block.closed && gids.length > 0,
  }
}

function portStateOf(text: string): Fact<'active' | 'down' | 'other'> {
  if (text.startsWith('PORT_ACTIVE')) return known('active')
  if (text.startsWith('PORT_DOWN')) return known('down')
  return /^PORT_[A-Z]+ /.test(text)
    ? known('other')
    : unknown('not-understood', `the port state "${text.slice(0, 40)}" is new to Bushel`)
}

function valueOf(values: ReadonlyMap<string, string>, key: string): Fact<string> {
  const value = values.get(key)
  return value === undefined
    ? unknown('not-printed', `ibv_devinfo prints no "${key}"`)
    : known(value)
}

function numberOf(values: ReadonlyMap<string, string>, key: string): Fact<number> {
  return chainFact(valueOf(values, key), (text) => {
    const number = wholeNumber(text)
    return number === null
      ? unknown('not-understood', `ibv_devinfo prints "${key}: ${text}"`)
      : known(number)
  })
}
