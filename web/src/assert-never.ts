// The end of a switch over a union: reached only if a case was forgotten, which the compiler says first.
export function assertNever(value: never): never {
  throw new Error(`This case was forgotten: ${JSON.stringify(value)}`)
}
