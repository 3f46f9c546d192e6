// RDMA tools: captures against what a person reads in them.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { captureFolder, toolCapture } from '../../../../test/support/captures.ts'
import {
  assertCutsClaimNothingNew,
  assertGarbageIsSurvived,
} from '../../../../test/support/claims.ts'
import { known } from '../../../core/machine-facts/fact.ts'
import { type RdmaDevice, ipv4OfGid } from '../../../core/machine-facts/rdma.ts'
import { parseIbvDevices, parseIbvDevinfo, parseRdmaSetting, rdmaDevicesOf } from './rdma.ts'

const folderCapture = (path: string): string => readFileSync(join(captureFolder(path)), 'utf8')

/** "rdma_en3 active lid 3 qp 11 mr 100 · 1=192.168.0.1", GIDs that carry an IPv4 address by index. */
function summary(text: string): readonly string[] {
  const devices = parseIbvDevinfo(text)
  assert.ok(devices.known)
  return devices.value.map(describe)
}

function describe(device: RdmaDevice): string {
  const parts = [device.name, device.portState.known ? device.portState.value : '?']
  if (device.portLid.known) parts.push(`lid ${device.portLid.value}`)
  if (device.queuePairsMax.known) parts.push(`qp ${device.queuePairsMax.value}`)
  if (device.memoryRegionsMax.known) parts.push(`mr ${device.memoryRegionsMax.value}`)
  const gids = device.gids.map((gid) => `${gid.index}=${ipv4OfGid(gid) ?? 'fe80'}`)
  return [parts.join(' '), ...gids].join(' · ')
}

test('parseRdmaSetting() takes the two words it knows and no other', () => {
  assert.deepEqual(parseRdmaSetting(toolCapture('rdma_ctl-status.enabled.txt')), known('enabled'))
  assert.deepEqual(
    parseRdmaSetting(toolCapture('rdma_ctl-status.disabled.reported.txt')),
    known('disabled'),
  )
  for (const word of ['Enabled', 'activé', 'enabled (pending restart)', 'enable', ''])
    assert.equal(parseRdmaSetting(word).known, false, word)
})

test('parseIbvDevices() reads names in whatever order and spacing they come', () => {
  assert.deepEqual(
    parseIbvDevices(toolCapture('ibv_devices.macstudio-m3ultra.txt')),
    known(['rdma_en2', 'rdma_en3', 'rdma_en5', 'rdma_en4', 'rdma_en6', 'rdma_en7']),
  )
  assert.deepEqual(
    parseIbvDevices(toolCapture('ibv_devices.macstudio-m3ultra.indented.txt')),
    known(['rdma_en2', 'rdma_en3', 'rdma_en4', 'rdma_en5', 'rdma_en6', 'rdma_en7']),
  )
  assert.deepEqual(
    parseIbvDevices(toolCapture('ibv_devices.macmini-m4pro.txt')),
    known(['rdma_en2', 'rdma_en3', 'rdma_en4']),
  )
  assert.deepEqual(
    parseIbvDevices(folderCapture('macos27-pair/macbook-b/ibv_devices.txt')),
    known(['rdma_en1', 'rdma_en6', 'rdma_en2']),
  )
})

test('parseIbvDevices() takes a header alone for "no device", and no header for "not understood"', () => {
  const headerOnly = toolCapture('ibv_devices.header-only.rdma-disabled-or-tb4.txt')
  assert.deepEqual(parseIbvDevices(headerOnly), known([]))
  assert.equal(parseIbvDevices('rdma_en2 8096a9d9edbaac05\n').known, false)
})

test('parseIbvDevinfo() reads the MacBook of the matched pair', () => {
  assert.deepEqual(summary(folderCapture('matched-pair/macbook/ibv_devinfo_-v.txt')), [
    'rdma_en1 down lid 1 qp 11 mr 100 · 0=fe80',
    'rdma_en2 down lid 2 qp 11 mr 100 · 0=fe80',
    'rdma_en3 active lid 3 qp 11 mr 100 · 0=fe80 · 1=192.168.0.1 · 2=fe80',
  ])
})

test('parseIbvDevinfo() reads the Studio of the matched pair, active device first', () => {
  assert.deepEqual(summary(folderCapture('matched-pair/studio/ibv_devinfo_-v.txt')), [
    'rdma_en3 active lid 2 qp 11 mr 100 · 0=fe80 · 1=192.168.0.2 · 2=fe80',
    'rdma_en2 down lid 1 qp 11 mr 100 · 0=fe80',
    'rdma_en4 down lid 3 qp 11 mr 100 · 0=fe80',
    'rdma_en5 down lid 4 qp 11 mr 100 · 0=fe80',
    'rdma_en6 down lid 5 qp 11 mr 100 · 0=fe80',
    'rdma_en7 down lid 6 qp 11 mr 100 · 0=fe80',
  ])
})

test('parseIbvDevinfo() reads the brief form, where no addresses are printed', () => {
  const text = folderCapture('macos27-pair/macbook-b/ibv_devinfo.txt')
  assert.deepEqual(summary(text), [
    'rdma_en1 down lid 1',
    'rdma_en6 down lid 2',
    'rdma_en2 down lid 3',
  ])
  const devices = parseIbvDevinfo(text)
  assert.ok(devices.known && devices.value.every((device) => !device.gidsComplete))
})

test('parseIbvDevinfo() reads the excerpts of the technote', () => {
  assert.deepEqual(
    summary(toolCapture('ibv_devinfo.macmini-m4pro.all-active.tn3205.excerpt.txt')),
    ['rdma_en2 active', 'rdma_en3 active', 'rdma_en4 active'],
  )
  assert.deepEqual(summary(toolCapture('ibv_devinfo-v.tn3205-rdma_en2.excerpt.txt')), [
    'rdma_en2 active · 0=fe80 · 1=169.254.205.255 · 2=fe80',
  ])
})

test('parseIbvDevinfo() reads a device without any IPv4 address', () => {
  assert.deepEqual(summary(toolCapture('ibv_devinfo-v.no-ipv4-gid.excerpts.txt')), [
    'rdma_en3 ? · 0=fe80 · 1=fe80',
  ])
})

test('parseIbvDevinfo() keeps indexes that skip', () => {
  const text = folderCapture('matched-pair/studio/ibv_devinfo_-v.txt').replace(
    'GID[  1]:',
    'GID[  2]:',
  )
  const devices = parseIbvDevinfo(text)
  assert.ok(devices.known)
  assert.deepEqual(
    devices.value[0]?.gids.map((gid) => gid.index),
    [0, 2, 2],
  )
})

test('rdmaDevicesOf() understands "No IB devices found" on either stream, with or without an error', () => {
  const words = toolCapture('ibv_devinfo.no-devices.txt')
  for (const outcome of [
    { kind: 'exited', exitCode: 0, stdout: words, stderr: '' },
    { kind: 'exited', exitCode: 255, stdout: '', stderr: words },
  ] as const)
    assert.deepEqual(rdmaDevicesOf(outcome), known([]))
})

test('rdmaDevicesOf() makes a hang a finding of its own', () => {
  const fact = rdmaDevicesOf({ kind: 'timed-out', afterMs: 5000 })
  assert.deepEqual(fact, {
    known: false,
    why: { kind: 'timed-out', detail: 'ibv_devinfo did not answer within 5 s' },
  })
})

for (const name of [
  'ibv_devices.macstudio-m3ultra.txt',
  'ibv_devices.macstudio-m3ultra.indented.txt',
  'ibv_devices.macmini-m4pro.txt',
])
  test(`parseIbvDevices() claims nothing new from ${name} cut short or damaged`, () => {
    assertCutsClaimNothingNew(toolCapture(name), parseIbvDevices)
    assertGarbageIsSurvived(toolCapture(name), parseIbvDevices)
  })

for (const path of [
  'matched-pair/macbook/ibv_devinfo_-v.txt',
  'matched-pair/studio/ibv_devinfo_-v.txt',
  'macos27-pair/macbook-b/ibv_devinfo.txt',
  'tools/ibv_devinfo.macmini-m4pro.all-active.tn3205.excerpt.txt',
  'tools/ibv_devinfo-v.tn3205-rdma_en2.excerpt.txt',
  'tools/ibv_devinfo-v.no-ipv4-gid.excerpts.txt',
])
  test(`parseIbvDevinfo() claims nothing new from ${path} cut short or damaged`, () => {
    assertCutsClaimNothingNew(folderCapture(path), parseIbvDevinfo)
    assertGarbageIsSurvived(folderCapture(path), parseIbvDevinfo)
  })
