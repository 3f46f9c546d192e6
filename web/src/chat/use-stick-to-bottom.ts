// Keeps the end of a growing text in sight, unless the reader has scrolled away from it.
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react'

/** Within this distance the reader is at the end. */
const slackPx = 60

export function useStickToBottom(): {
  readonly ref: RefObject<HTMLDivElement | null>
  readonly isAway: boolean
  readonly stick: () => void
} {
  const ref = useRef<HTMLDivElement>(null)
  const isStuck = useRef(true)
  const [isAway, setAway] = useState(false)
  const toEnd = useCallback(() => {
    const box = ref.current
    if (box !== null && isStuck.current) box.scrollTop = box.scrollHeight
  }, [])

  useEffect(() => {
    const box = ref.current
    if (box === null) return undefined
    const onScroll = (): void => {
      isStuck.current = box.scrollHeight - box.scrollTop - box.clientHeight < slackPx
      setAway(!isStuck.current)
    }
    // A keyboard that opens, or a window that shrinks, must not hide the end either.
    const observer = new ResizeObserver(toEnd)
    observer.observe(box)
    box.addEventListener('scroll', onScroll, { passive: true })
    return () => {
      observer.disconnect()
      box.removeEventListener('scroll', onScroll)
    }
  }, [toEnd])

  // After every drawing: the text may have grown.
  useLayoutEffect(toEnd)

  const stick = useCallback(() => {
    isStuck.current = true
    setAway(false)
    toEnd()
  }, [toEnd])
  return { ref, isAway, stick }
}
