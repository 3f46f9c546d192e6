// The page's few icons, drawn with strokes in the colour of the text around them.
import type { ReactNode } from 'react'

const shapes = {
  send: <path d="M12 19V5M6 11l6-6 6 6" />,
  stop: <rect x="5.5" y="5.5" width="13" height="13" rx="2.5" fill="currentColor" stroke="none" />,
  plus: <path d="M12 5v14M5 12h14" />,
  menu: <path d="M4 7h16M4 12h16M4 17h16" />,
  close: <path d="M6 6l12 12M18 6L6 18" />,
  copy: (
    <>
      <rect x="9" y="9" width="11" height="11" rx="2" />
      <path d="M5 15H4V6a2 2 0 0 1 2-2h9v1" />
    </>
  ),
  check: <path d="M5 12.5l4.5 4.5L19 7.5" />,
  again: (
    <>
      <path d="M20 11a8 8 0 1 0-2.3 6.3" />
      <path d="M20.5 5v6h-6" />
    </>
  ),
  edit: <path d="M4 20l1-4.5L16.5 4a2.1 2.1 0 0 1 3 3L8 18.5 4 20zM14 6.5l3 3" />,
  trash: <path d="M5 7h14M10 7V5h4v2M7 7l1 12h8l1-12M10.5 11v5M13.5 11v5" />,
  down: <path d="M12 5v14M6 13l6 6 6-6" />,
  chevron: <path d="M7 10l5 5 5-5" />,
  warning: <path d="M12 4.5L21 19.5H3L12 4.5zM12 10v4.5M12 17v.2" />,
  light: (
    <>
      <circle cx="12" cy="12" r="4" />
      <path d="M12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6L7 7M17 17l1.4 1.4M5.6 18.4L7 17M17 7l1.4-1.4" />
    </>
  ),
  dark: <path d="M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z" />,
  system: (
    <>
      <circle cx="12" cy="12" r="8" />
      <path d="M12 4a8 8 0 0 1 0 16z" fill="currentColor" />
    </>
  ),
} satisfies Record<string, ReactNode>

export type IconName = keyof typeof shapes

export function Icon({ name }: { name: IconName }): ReactNode {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      {shapes[name]}
    </svg>
  )
}

export function IconButton(props: {
  icon: IconName
  label: string
  onClick: () => void
  className?: string
  isDisabled?: boolean
}): ReactNode {
  return (
    <button
      type="button"
      className={`icon-button ${props.className ?? ''}`}
      aria-label={props.label}
      title={props.label}
      disabled={props.isDisabled === true}
      onClick={props.onClick}
    >
      <Icon name={props.icon} />
    </button>
  )
}
