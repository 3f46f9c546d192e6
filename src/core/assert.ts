// Promises that our own code makes to itself. When one is broken the program is wrong and must stop.

export class BrokenPromiseError extends Error {
  override readonly name = 'BrokenPromiseError'
}

export function assert(condition: boolean, promise: string): asserts condition {
  if (!condition) throw new BrokenPromiseError(promise)
}

/** Ends a switch over a union: adding a member without handling it no longer compiles. */
export function assertNever(value: never): never {
  throw new BrokenPromiseError(`unhandled case ${JSON.stringify(value)}`)
}
