// A crowd of clients of every protocol at once, some of which hang up: whoever asks, and in whatever company, gets
// the answer that was given to the same question when it was asked alone.
import { type Form, forms } from './mixed-forms.ts'

const atOnce = 16
/** Every so many requests one is begun and given up after its first words. */
const hangUpEvery = 10
const prompts = [
  'What is the capital of France?',
  'What is two plus two?',
  'Name a colour.',
  'Say hello.',
  'What do cows drink?',
  'Name a planet.',
  'What is the opposite of hot?',
  'Spell the word cat.',
]

export interface MixedReport {
  readonly wrong: readonly string[]
  readonly hungUp: number
  readonly seconds: number
}

interface Question {
  readonly model: string
  readonly prompt: string
}

async function ask(url: string, form: Form, question: Question): Promise<string> {
  const body = JSON.stringify(form.body(question))
  const response = await fetch(`${url}${form.path}`, { method: 'POST', body })
  const text = await response.text()
  if (!response.ok) return `status ${response.status}: ${text.slice(0, 200)}`
  try {
    return form.read(text)
  } catch {
    return `unreadable: ${text.slice(0, 200)}`
  }
}

/** Asks for a long story and goes away in the middle of it. */
async function hangUp(url: string, { model }: Question): Promise<void> {
  const leaving = new AbortController()
  const messages = [{ role: 'user', content: 'Tell me a very long story.' }]
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model, messages, max_tokens: 400, stream: true }),
    signal: leaving.signal,
  })
  await response.body?.getReader().read()
  leaving.abort()
}

export async function mixedRequests(
  url: string,
  { model, count }: { model: string; count: number },
): Promise<MixedReport> {
  const startMs = performance.now()
  const wanted = new Map<string, string>()
  for (const prompt of prompts)
    for (const form of forms)
      if (!wanted.has(`${form.kind} ${prompt}`))
        wanted.set(`${form.kind} ${prompt}`, await ask(url, form, { model, prompt }))
  const wrong: string[] = [...wanted]
    .filter(([, answer]) => /^(status|unreadable)/.test(answer))
    .map(([asked, answer]) => `${asked}, alone: ${answer}`)
  let hungUp = 0
  const waiting = Array.from({ length: count }, (_, number) => number).values()
  const sender = async (): Promise<void> => {
    for (const number of waiting) {
      const form = forms[number % forms.length] as Form
      const prompt =
        prompts[(number * 5 + Math.floor(number / forms.length)) % prompts.length] ?? ''
      if (number % hangUpEvery === hangUpEvery - 1) {
        await hangUp(url, { model, prompt })
        hungUp += 1
        continue
      }
      const answer = await ask(url, form, { model, prompt })
      const due = wanted.get(`${form.kind} ${prompt}`)
      if (answer !== due)
        wrong.push(
          `${form.name}, "${prompt}": ${JSON.stringify(answer)}, not ${JSON.stringify(due)}`,
        )
    }
  }
  await Promise.all(Array.from({ length: atOnce }, sender))
  return { wrong, hungUp, seconds: (performance.now() - startMs) / 1000 }
}
