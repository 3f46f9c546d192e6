// Words that say nothing about the subject of a question.

export const stopWords: ReadonlySet<string> = new Set(
  `a about actually after all already also always am an and any anyone anything are aren't as at be
  because been before being but by can can't could did didn't do does doesn't doing don't during
  each else even ever every exactly existing expect finally for from get gets getting give go
  going good got great had happen happened happens has have having he hello help her here hi his
  how i i'd i'm if in into is isn't it it's its just kind know let let's like look lot make makes
  many may maybe me mean might more most much must my need nice no not now of on ones only or
  other others our out over people per please possible practical question questions quite really
  regular say says seem seems several she should since so some someone something sound sounds
  still such sure than thank thanks that that's the their them then there these they they're thing
  things think this those through to too tried try trying under until up us use used using versus
  very via vs want wanted wants was wasn't way we well were what what's when where whether which
  while who why will with without won't work works would wouldn't yes yet you you're your`
    .split(/\s+/)
    .filter(Boolean),
)

/** Words of nearly every question here: they narrow nothing down and count for little. */
export const subjectWords: ReadonlySet<string> = new Set([
  'mac',
  'macs',
  'apple',
  'silicon',
  'apple silicon',
  'cluster',
  'clusters',
  'clustering',
])
