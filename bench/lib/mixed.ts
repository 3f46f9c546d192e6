// The same small questions in every protocol at once: whoever asks, and in whatever company, gets the same
// answer.

interface Form {
  readonly name: string
  readonly path: string
  readonly body: (model: string, prompt: string) => object
  readonly read: (text: string) => string
}

const tokens = 4
const atOnce = 16
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

const chat = (prompt: string): object[] => [{ role: 'user', content: prompt }]

interface Parsed {
  readonly choices?: { message?: { content: string }; delta?: { content?: string } }[]
  readonly output?: { content: { text: string }[] }[]
  readonly content?: { text: string }[]
  readonly message?: { content: string }
  readonly response?: string
  readonly delta?: { text?: string } | string
}

const parse = (text: string): Parsed => JSON.parse(text) as Parsed

function events(text: string): readonly Parsed[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => parse(line.slice(6)))
}

const forms: readonly Form[] = [
  {
    name: 'chat',
    path: '/v1/chat/completions',
    body: (model, prompt) => ({
      model,
      messages: chat(prompt),
      max_tokens: tokens,
      temperature: 0,
    }),
    read: (text) => parse(text).choices?.[0]?.message?.content ?? '',
  },
  {
    name: 'chat stream',
    path: '/v1/chat/completions',
    body: (model, prompt) => ({
      model,
      messages: chat(prompt),
      max_tokens: tokens,
      temperature: 0,
      stream: true,
    }),
    read: (text) =>
      events(text)
        .map(({ choices }) => choices?.[0]?.delta?.content ?? '')
        .join(''),
  },
  {
    name: 'responses',
    path: '/v1/responses',
    body: (model, input) => ({
      model,
      input,
      max_output_tokens: tokens,
      temperature: 0,
      store: false,
    }),
    read: (text) => parse(text).output?.[0]?.content[0]?.text ?? '',
  },
  {
    name: 'messages',
    path: '/v1/messages',
    body: (model, prompt) => ({
      model,
      messages: chat(prompt),
      max_tokens: tokens,
      temperature: 0,
    }),
    read: (text) => parse(text).content?.[0]?.text ?? '',
  },
  {
    name: 'messages stream',
    path: '/v1/messages',
    body: (model, prompt) => ({
      model,
      messages: chat(prompt),
      max_tokens: tokens,
      temperature: 0,
      stream: true,
    }),
    read: (text) =>
      events(text)
        .map(({ delta }) => (typeof delta === 'object' ? (delta.text ?? '') : ''))
        .join(''),
  },
  {
    name: 'ollama chat',
    path: '/api/chat',
    body: (model, prompt) => ({
      model,
      messages: chat(prompt),
      options: { num_predict: tokens, temperature: 0 },
    }),
    read: (text) =>
      text
        .trim()
        .split('\n')
        .map((line) => parse(line).message?.content ?? '')
        .join(''),
  },
  {
    name: 'ollama generate',
    path: '/api/generate',
    body: (model, prompt) => ({
      model,
      prompt,
      options: { num_predict: tokens, temperature: 0 },
      stream: false,
    }),
    read: (text) => parse(text).response ?? '',
  },
]

async function ask(
  url: string,
  form: Form,
  about: { model: string; prompt: string },
): Promise<string> {
  const body = JSON.stringify(form.body(about.model, about.prompt))
  const response = await fetch(`${url}${form.path}`, { method: 'POST', body })
  const text = await response.text()
  return response.ok ? form.read(text) : `status ${response.status}: ${text.slice(0, 200)}`
}

export async function mixedRequests(
  url: string,
  { model, count }: { model: string; count: number },
): Promise<{ wrong: readonly string[]; seconds: number }> {
  const [first] = forms
  const wanted = new Map<string, string>()
  for (const prompt of prompts)
    if (first !== undefined) wanted.set(prompt, await ask(url, first, { model, prompt }))
  const wrong: string[] = []
  const startMs = performance.now()
  const waiting = Array.from({ length: count }, (_, number) => number).values()
  const sender = async (): Promise<void> => {
    for (const number of waiting) {
      const form = forms[number % forms.length] as Form
      const prompt =
        prompts[(number * 5 + Math.floor(number / forms.length)) % prompts.length] ?? ''
      const answer = await ask(url, form, { model, prompt })
      if (answer !== wanted.get(prompt))
        wrong.push(
          `${form.name}, "${prompt}": ${JSON.stringify(answer)}, not ${JSON.stringify(wanted.get(prompt))}`,
        )
    }
  }
  await Promise.all(Array.from({ length: atOnce }, sender))
  return { wrong, seconds: (performance.now() - startMs) / 1000 }
}
