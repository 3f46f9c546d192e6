// A bar with a known end, or one that only moves.
import type { ReactNode } from 'react'

export function ProgressBar(props: { label: string; fraction: number | null }): ReactNode {
  const { fraction } = props
  const percent = fraction === null ? null : Math.round(Math.min(1, Math.max(0, fraction)) * 100)
  return (
    <div
      className="bar"
      role="progressbar"
      aria-label={props.label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={percent ?? undefined}
      data-known={percent !== null}
    >
      <span style={percent === null ? undefined : { inlineSize: `${percent}%` }} />
    </div>
  )
}
