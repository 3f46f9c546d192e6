// Tells a screen reader how the answer goes, without reading every token.
import { type ReactNode, useState } from 'react'
import { announcementOf } from './announce.ts'
import { type Answer, isRunning } from './answer.ts'

export function Announcer({ answer }: { answer: Answer | null }): ReactNode {
  // An old chat that is merely opened is not news.
  const [hasRun, setHasRun] = useState(false)
  if (!hasRun && answer !== null && isRunning(answer)) setHasRun(true)
  return (
    <p className="unseen" role="status">
      {hasRun ? announcementOf(answer) : ''}
    </p>
  )
}
