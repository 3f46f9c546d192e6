// Which RDMA device each rank uses towards each other rank, in the form that JACCL reads. Where a pair
// has several cables, both of its cells list them in the order of the one shared list of cables: two
// ends that count differently deadlock without an error.
import type { Cable } from '../topology/cables.ts'

/** No cable, one device, or one device per cable. */
export type DeviceCell = string | readonly string[] | null
export type DeviceMatrix = readonly (readonly DeviceCell[])[]

/** Every pair gets the same number of cables, the smallest that any pair has. */
export function meshMatrix(order: readonly string[], cables: readonly Cable[]): DeviceMatrix {
  const width = Math.min(
    ...order.flatMap((a, index) =>
      order.slice(index + 1).map((b) => devicesBetween(cables, { from: a, to: b }).length),
    ),
  )
  return order.map((a) =>
    order.map((b) => (a === b ? null : cell(devicesBetween(cables, { from: a, to: b }), width))),
  )
}

/** Only neighbours in the ring have a cell; `width` cables go to each. */
export function ringMatrix(
  order: readonly string[],
  cables: readonly Cable[],
  width: number,
): DeviceMatrix {
  const size = order.length
  return order.map((a, index) => {
    const neighbours = [order[(index + size - 1) % size], order[(index + 1) % size]]
    return order.map((b) =>
      a !== b && neighbours.includes(b)
        ? cell(devicesBetween(cables, { from: a, to: b }), width)
        : null,
    )
  })
}

function cell(devices: readonly string[], width: number): DeviceCell {
  const used = devices.slice(0, width)
  if (used.length === 0) return null
  return used.length === 1 ? (used[0] ?? null) : used
}

/** Devices of `from` on its cables to `to`, in shared order. */
export function devicesBetween(
  cables: readonly Cable[],
  pair: { readonly from: string; readonly to: string },
): readonly string[] {
  return cables.flatMap(({ ends }) => {
    const mine = ends.find((end) => end.machine === pair.from)
    const theirs = ends.find((end) => end.machine === pair.to)
    if (mine === undefined || theirs === undefined) return []
    return mine.rdmaDevice.known && theirs.rdmaDevice.known ? [mine.rdmaDevice.value] : []
  })
}

/** What JACCL itself would refuse: a matrix that is not square, or a diagonal that is not empty. */
export function matrixFaults(matrix: DeviceMatrix): readonly string[] {
  const faults: string[] = []
  for (const [rank, row] of matrix.entries()) {
    if (row.length !== matrix.length)
      faults.push(`rank ${rank} lists ${row.length} cells for ${matrix.length} ranks`)
    if (row[rank] !== null) faults.push(`rank ${rank} names a device to itself`)
    for (const [other, devices] of row.entries())
      if ((devices === null) !== (matrix[other]?.[rank] === null))
        faults.push(`only one of ranks ${rank} and ${other} names a device to the other`)
  }
  return faults
}
