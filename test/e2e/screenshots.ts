// Makes the pictures of the page in docs/images from a real daemon and its real answers:
//   node test/e2e/screenshots.ts
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { launchBrowser } from './browser.ts'
import { startDaemon } from './daemon.ts'

const folder = join(import.meta.dirname, '..', '..', 'docs', 'images')
const answerMsMax = 120_000

async function ask(page: Page, question: string): Promise<void> {
  await page.getByRole('combobox', { name: 'Model' }).waitFor()
  await page.getByLabel('Your question').fill(question)
  await page.getByLabel('Your question').press('Enter')
}

async function lastAnswer(page: Page, status: string): Promise<void> {
  await page.locator(`.turn:last-child .answer[data-status="${status}"] .markdown`).waitFor()
}

const daemon = await startDaemon({ env: { BUSHEL_NAME: 'studio' } })
const browser = await launchBrowser()
try {
  const context = await browser.newContext({
    viewport: { width: 1120, height: 720 },
    deviceScaleFactor: 1.5,
    colorScheme: 'light',
  })
  const page = await context.newPage()
  page.setDefaultTimeout(answerMsMax)
  await page.goto(daemon.url)
  await ask(page, 'Give me three tips for a good night of sleep.')
  await lastAnswer(page, 'done')
  await page.getByRole('button', { name: 'New chat' }).click()
  await ask(page, 'Write a Python function that reverses a string, with an example.')
  await lastAnswer(page, 'done')
  await page.mouse.move(1, 1)
  // Colours fade from one state to the next.
  await page.waitForTimeout(300)
  await page.screenshot({ path: join(folder, 'page-light.png') })

  await page.emulateMedia({ colorScheme: 'dark' })
  await page.getByRole('navigation', { name: 'Chats' }).getByText('Give me three tips').click()
  await ask(page, 'Tell me about Paris, the capital of France, in two sentences.')
  // In the middle of its answer, unless that is a short one.
  const answer = page.locator('.turn:last-child .answer')
  const isRunning = async (): Promise<boolean> =>
    (await answer.getAttribute('data-status')) !== 'done'
  while ((await isRunning()) && (await answer.innerText()).length < 220)
    await page.waitForTimeout(30)
  await page.mouse.move(1, 1)
  await page.screenshot({ path: join(folder, 'page-dark.png') })
} finally {
  await browser.close()
  await daemon.stop()
}
