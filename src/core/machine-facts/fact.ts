// One thing that was looked up on a machine, or the reason why it is not known. Nothing here is ever
// guessed: a missing tool, a hang or a line nobody understands stays visible up to the person.

export type Fact<T> =
  | { readonly known: true; readonly value: T }
  | { readonly known: false; readonly why: Unknown }

export interface Unknown {
  readonly kind: UnknownKind
  /** One clause that can follow "because": "ibv_devinfo did not answer within 5 s". */
  readonly detail: string
}

export type UnknownKind =
  /** The program is not installed on this machine. */
  | 'tool-missing'
  /** The program did not answer in time. On a Mac a wedged RDMA driver looks like this. */
  | 'timed-out'
  /** The program wants a password or root. */
  | 'needs-admin'
  /** The program ended with an error. */
  | 'tool-failed'
  /** The program ended well and said nothing. */
  | 'empty'
  /** The output has a shape that this version of Bushel does not know. */
  | 'not-understood'
  /** The output was understood, and this item is not in it. */
  | 'not-printed'
  /** A folder of captures that does not hold this one. */
  | 'not-captured'
  /** The question makes no sense on this kind of machine. */
  | 'not-applicable'

export function known<T>(value: T): Fact<T> {
  return { known: true, value }
}

export function unknown(
  kind: UnknownKind,
  detail: string,
): { readonly known: false; readonly why: Unknown } {
  return { known: false, why: { kind, detail } }
}

export function mapFact<T, U>(fact: Fact<T>, convert: (value: T) => U): Fact<U> {
  return fact.known ? known(convert(fact.value)) : fact
}

/** For conversions that may themselves find that something is missing. */
export function chainFact<T, U>(fact: Fact<T>, convert: (value: T) => Fact<U>): Fact<U> {
  return fact.known ? convert(fact.value) : fact
}

/** True only when the fact is known and equals `value`: unknown is never taken for a yes. */
export function isKnown<T>(fact: Fact<T>, value: T): boolean {
  return fact.known && fact.value === value
}

/** The first known fact; otherwise the reason of the first, which was the best source. */
export function firstKnown<T>(best: Fact<T>, ...others: readonly Fact<T>[]): Fact<T> {
  return [best, ...others].find((fact) => fact.known) ?? best
}

export function whyUnknown(fact: Fact<unknown>): string {
  return fact.known ? 'it is known' : fact.why.detail
}
