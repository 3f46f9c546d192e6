// One answer: its thoughts, its text, how it stands, what went wrong, and its figures.
import type { ReactNode } from 'react'
import { Markdown } from '../markdown/markdown.tsx'
import { CopyButton } from '../shell/copy-button.tsx'
import { Icon, IconButton } from '../shell/icons.tsx'
import { type Answer, isRunning } from './answer.ts'
import { FailureCard } from './failure-card.tsx'
import { figuresOf, formatDuration, formatRate, formatTokens, reasoningMs } from './figures.ts'
import { WaitingLine } from './waiting-line.tsx'

export function AnswerView(props: { answer: Answer; onAgain: (() => void) | null }): ReactNode {
  const { answer, onAgain } = props
  const isStreaming = answer.status === 'streaming'
  return (
    <div className="answer" data-status={answer.status} aria-busy={isRunning(answer)}>
      <h2 className="unseen">Answer of {answer.model}</h2>
      {answer.reasoning !== '' && <Reasoning answer={answer} />}
      {answer.text !== '' && <Markdown text={answer.text} />}
      {answer.status === 'waiting' && <WaitingLine model={answer.model} />}
      {answer.status === 'failed' && (
        <FailureCard failure={answer.failure ?? { kind: 'cut-off' }} onAgain={onAgain} />
      )}
      {answer.finishReason === 'length' && (
        <p className="notice">
          The answer reached its longest length. Ask to go on if you want more.
        </p>
      )}
      <footer className="answer-foot">
        <FiguresLine answer={answer} />
        {!isRunning(answer) && answer.text !== '' && (
          <CopyButton text={answer.text} what="the answer" />
        )}
        {onAgain !== null && answer.status !== 'failed' && (
          <IconButton icon="again" label="Answer again" onClick={onAgain} />
        )}
        {isStreaming && <span className="pulse" aria-hidden="true" />}
      </footer>
    </div>
  )
}

/** Folded: the answer is what was asked for. */
function Reasoning({ answer }: { answer: Answer }): ReactNode {
  const ms = reasoningMs(answer)
  const words = ms === null ? 'Thinking …' : `Thought for ${formatDuration(ms)}`
  return (
    <details className="reasoning">
      <summary>
        <Icon name="chevron" /> {words}
      </summary>
      <Markdown text={answer.reasoning} />
    </details>
  )
}

function FiguresLine({ answer }: { answer: Answer }): ReactNode {
  const { firstTokenMs, tokens, tokensPerSecond } = figuresOf(answer)
  if (firstTokenMs === null || tokens === null) return null
  const seen = 'Counted from what arrived; the server’s own count comes with the end of an answer.'
  return (
    <p className="figures">
      {answer.status === 'stopped' && <span>Stopped</span>}
      {tokensPerSecond !== null && (
        <span
          title={
            tokensPerSecond.isLowerBound ? seen : 'After the first token, measured in this page.'
          }
        >
          {formatRate(tokensPerSecond)}
        </span>
      )}
      <span title="From sending the question to the first piece of the answer, measured in this page.">
        {formatDuration(firstTokenMs)} to first token{answer.includesLoad ? ', with loading' : ''}
      </span>
      {!isRunning(answer) && (
        <>
          <span title={tokens.isLowerBound ? seen : 'As the server counted them.'}>
            {formatTokens(tokens)}
          </span>
          <span>{answer.model}</span>
        </>
      )}
    </p>
  )
}
