// Where the time of a token goes. Kept apart, because each part rests on another constant: the range
// of a prediction and the sentence that explains it both come from these shares.
export const termNames = [
  'weights',
  'cache',
  'scores',
  'launches',
  'matmul',
  'collectives',
  'wire',
  'hops',
  'engine',
] as const
export type TermName = (typeof termNames)[number]
export type Terms = Readonly<Record<TermName, number>>

export const noTerms: Terms = {
  weights: 0,
  cache: 0,
  scores: 0,
  launches: 0,
  matmul: 0,
  collectives: 0,
  wire: 0,
  hops: 0,
  engine: 0,
}

export function addTerms(a: Terms, b: Terms): Terms {
  return {
    weights: a.weights + b.weights,
    cache: a.cache + b.cache,
    scores: a.scores + b.scores,
    launches: a.launches + b.launches,
    matmul: a.matmul + b.matmul,
    collectives: a.collectives + b.collectives,
    wire: a.wire + b.wire,
    hops: a.hops + b.hops,
    engine: a.engine + b.engine,
  }
}

export function totalSeconds(terms: Terms): number {
  return (
    terms.weights +
    terms.cache +
    terms.scores +
    terms.launches +
    terms.matmul +
    terms.collectives +
    terms.wire +
    terms.hops +
    terms.engine
  )
}
