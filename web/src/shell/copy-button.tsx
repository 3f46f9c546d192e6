// A button that copies, and says for a moment that it has.
import { type ReactNode, useEffect, useState } from 'react'
import { copyText } from '../copy-text.ts'
import { Icon } from './icons.tsx'

type Outcome = 'none' | 'copied' | 'failed'

const words: Readonly<Record<Outcome, string>> = {
  none: 'Copy',
  copied: 'Copied',
  failed: 'The browser did not allow it',
}

const shownMs = 1600

export function CopyButton(props: { text: string; what: string; hasWords?: boolean }): ReactNode {
  const [outcome, setOutcome] = useState<Outcome>('none')
  useEffect(() => {
    if (outcome === 'none') return undefined
    const timer = setTimeout(() => setOutcome('none'), shownMs)
    return () => clearTimeout(timer)
  }, [outcome])
  const copy = async (): Promise<void> => {
    setOutcome((await copyText(props.text)) ? 'copied' : 'failed')
  }
  const label = outcome === 'none' ? `Copy ${props.what}` : words[outcome]
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={label}
      title={label}
      onClick={() => void copy()}
    >
      <Icon name={outcome === 'copied' ? 'check' : 'copy'} />
      {props.hasWords === true && <span aria-hidden="true">{words[outcome]}</span>}
    </button>
  )
}
