// The page in a real browser, served by a real daemon with the starter model.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser, Locator, Page } from 'playwright-core'
import { type ClusterView, clusterView } from '../../src/wire/cluster-view.ts'
import { askWithoutChance, launchBrowser, watchComplaints } from './browser.ts'
import { type TestDaemon, startDaemon } from './daemon.ts'

/** One token may take half a second on a computer that runs other tests, too. */
const answerMsMax = 120_000

let browser: Browser
let daemon: TestDaemon

before(async () => {
  browser = await launchBrowser()
  daemon = await startDaemon()
})

after(async () => {
  await browser?.close()
  await daemon?.stop()
})

async function openPage(url = daemon.url): Promise<{ page: Page; complaints: readonly string[] }> {
  const page = await (await browser.newContext()).newPage()
  page.setDefaultTimeout(answerMsMax)
  const complaints = watchComplaints(page)
  await askWithoutChance(page)
  await page.goto(url)
  return { page, complaints }
}

async function ask(page: Page, question: string): Promise<Locator> {
  // The page knows its model before anything can be sent.
  await page.getByRole('combobox', { name: 'Model' }).waitFor()
  await page.getByLabel('Your question').fill(question)
  await page.getByLabel('Your question').press('Enter')
  return page.locator('.turn').last().locator('.answer')
}

async function finished(answer: Locator): Promise<void> {
  await answer.and(answer.page().locator('[data-status="done"]')).waitFor()
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + answerMsMax
  while (!(await isSo())) {
    assert(performance.now() < deadline, `waited in vain until ${what}`)
    await sleep(50)
  }
}

async function tokensMade(): Promise<number> {
  const response = await fetch(`${daemon.url}/cluster/view`)
  const view: ClusterView = clusterView.parse(await response.json())
  const ranks = view.deployments.flatMap(({ groups }) =>
    groups.flatMap(({ stages }) => stages.flatMap((stage) => stage.ranks)),
  )
  return ranks.reduce((sum, rank) => sum + rank.tokens, 0)
}

test('the page answers, and shows tokens per second and the time to the first token', async () => {
  const { page, complaints } = await openPage()
  const answer = await ask(page, 'What is the capital of France?')
  await answer.getByText('Paris').waitFor()
  await finished(answer)
  const figures = await answer.locator('.figures').innerText()
  assert.match(figures, /(^|\D)\d+(\.\d)? tok\/s/)
  assert.match(figures, /\d+(\.\d)? m?s to first token/)
  assert.doesNotMatch(figures, /≥/, 'the count of a whole answer is the server’s own')
  assert.deepEqual(complaints, [])
  await page.context().close()
})

test('the stop button stops a long answer, in the page and in the rank', async () => {
  const { page, complaints } = await openPage()
  const answer = await ask(page, 'Write a very long story about an orchard.')
  const text = answer.locator('.markdown')
  await text.waitFor()
  const early = await text.innerText()
  assert.equal(await answer.getAttribute('data-status'), 'streaming')
  await until('the text grows', async () => (await text.innerText()).length > early.length + 20)
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByRole('button', { name: 'Send' }).waitFor()
  assert.equal(await answer.getAttribute('data-status'), 'stopped')
  assert.match(await answer.locator('.figures').innerText(), /Stopped[\s\S]*≥ \d+ tokens/)
  const stopped = await text.innerText()
  // What was under way may still be counted; after that the rank must rest. Unstopped it would write for minutes.
  let made = -1
  for (let looks = 0; looks < 8 && made !== (await tokensMade()); looks++) {
    made = await tokensMade()
    await sleep(1500)
  }
  assert.equal(await tokensMade(), made)
  assert.equal(await text.innerText(), stopped)
  assert.deepEqual(complaints, [])
  await page.context().close()
})

test('the page keeps chats, asks again, and lets the last question be edited', async () => {
  const { page, complaints } = await openPage()
  await finished(await ask(page, 'What is the capital of France?'))
  await page.reload()
  await page.getByRole('navigation', { name: 'Chats' }).getByText('What is the capital').click()
  await page.getByText('The capital of France is Paris').waitFor()

  await page.getByRole('button', { name: 'Edit the question' }).click()
  const editor = page.getByRole('textbox', { name: 'Edit the question' })
  await editor.fill('Give me three tips for a good night of sleep.')
  const request = page.waitForRequest('**/v1/chat/completions')
  await editor.press('Enter')
  const body = (await request).postDataJSON() as { messages: readonly unknown[] }
  assert.deepEqual(body.messages, [
    { role: 'user', content: 'Give me three tips for a good night of sleep.' },
  ])
  await page.locator('[data-status="done"]').waitFor()
  assert.equal(await page.locator('.turn').count(), 1)
  const changed = await page.locator('.answer .markdown').innerText()
  assert.match(changed, /sleep/)

  await page.getByRole('button', { name: 'Answer again' }).click()
  await page.locator('[data-status="done"]').waitFor()
  // Without chance, the same question has the same answer.
  assert.equal(await page.locator('.answer .markdown').innerText(), changed)
  await page.getByRole('button', { name: 'New chat' }).click()
  assert.equal(await page.locator('.turn').count(), 0)
  await page.getByRole('button', { name: 'Delete “Give me three' }).click()
  await page.getByRole('button', { name: 'Really delete' }).click()
  await page.reload()
  await page.getByText('Your chats will be kept here').waitFor()
  assert.deepEqual(complaints, [])
  await page.context().close()
})

test('the page asks for an API key, and says in the conversation when the server is gone', async () => {
  const guarded = await startDaemon({ env: { BUSHEL_API_KEY: 'e2e-key' } })
  try {
    const { page, complaints } = await openPage(guarded.url)
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('API key').fill('wrong')
    await dialog.getByLabel('API key').press('Enter')
    await dialog.getByText('does not know this key').waitFor()
    await dialog.getByLabel('API key').fill('e2e-key')
    await dialog.getByLabel('API key').press('Enter')
    await finished(await ask(page, 'What is the capital of France?'))
    await guarded.stop()
    const answer = await ask(page, 'Are you still there?')
    await answer.getByText('Bushel does not answer').waitFor()
    await answer.getByText('bushel up').waitFor()
    await answer.getByRole('button', { name: 'Try again' }).waitFor()
    assert.deepEqual(complaints, [])
    await page.context().close()
  } finally {
    await guarded.stop()
  }
})
