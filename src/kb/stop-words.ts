// Words that say nothing about the subject of a question.

export const stopWords: ReadonlySet<string> = new Set(
  `a about after all also am an and any are aren't as at be because been before being but by can
  can't could did do does doesn't doing don't during each else exactly existing expect for from get gets getting give
  go going got had happen happened happens has have having he her here his how i i'd i'm if in into is isn't it it's its just
  kind let like look lot make makes many may me might more most much my need no not now of on
  ones or other others our out over per please possible practical really say says several she should since
  so some still such than that that's the their them then there these they thing things this those
  through to too under until up us use used using very via vs versus was wasn't we were what what's
  when where which while who why will with without won't work works would you your`
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
