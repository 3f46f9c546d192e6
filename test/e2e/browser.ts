// A real browser for end-to-end tests, and what the page must never do in it.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { type Browser, type Page, chromium } from 'playwright-core'

const defaultPath = '/usr/bin/chromium'

export function launchBrowser(): Promise<Browser> {
  const path = process.env['BUSHEL_CHROMIUM'] ?? defaultPath
  assert(
    existsSync(path),
    `There is no browser at ${path}; install Chromium, or set BUSHEL_CHROMIUM to the path of Chrome or Chromium`,
  )
  // Its sandbox needs rights that containers and CI do not give; the page under test is our own.
  return chromium.launch({ executablePath: path, args: ['--no-sandbox'] })
}

/** Complaints of the page itself: exceptions, and what its content policy refused. */
export function watchComplaints(page: Page): readonly string[] {
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(`exception: ${error.message}`))
  page.on('console', (message) => {
    const text = message.text()
    // Failed requests are the server's answers, shown in the page; tests look at them there.
    if (message.type() === 'error' && !text.startsWith('Failed to load resource'))
      complaints.push(`console: ${text}`)
  })
  return complaints
}

/** Takes chance out of the answers: the most likely token, always. The rest of the way stays real. */
export async function askWithoutChance(page: Page): Promise<void> {
  await page.route('**/v1/chat/completions', (route) => {
    const body = route.request().postDataJSON() as Record<string, unknown>
    return route.continue({ postData: JSON.stringify({ ...body, temperature: 0 }) })
  })
}
