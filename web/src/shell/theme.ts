// Light, dark, or as the system is.
import { useEffect, useState } from 'react'
import type { KeyValueStore } from '../chat/history.ts'

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const storageKey = 'bushel.theme'

export function useTheme(preferences: KeyValueStore): readonly [Theme, () => void] {
  const [theme, setTheme] = useState<Theme>(() => {
    const kept = preferences.getItem(storageKey)
    return themes.find((known) => known === kept) ?? 'system'
  })
  useEffect(() => {
    document.documentElement.dataset['theme'] = theme
  }, [theme])
  const next = (): void => {
    const following = themes[(themes.indexOf(theme) + 1) % themes.length] ?? 'system'
    preferences.setItem(storageKey, following)
    setTheme(following)
  }
  return [theme, next]
}
