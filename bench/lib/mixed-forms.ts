// The same small questions as each protocol asks them, whole and streamed, free, with a schema, with a tool.

export interface Form {
  readonly name: string
  readonly path: string
  /** Forms of one kind must give the same answer to the same question. */
  readonly kind: 'chat' | 'text' | 'schema' | 'tool'
  readonly body: (about: { model: string; prompt: string }) => object
  readonly read: (text: string) => string
}

interface Call {
  readonly function: { readonly name?: string; readonly arguments: unknown }
}

interface Said {
  readonly content?: string | null
  readonly tool_calls?: readonly Call[]
}

interface Parsed {
  readonly choices?: readonly { message?: Said; delta?: Said; text?: string }[]
  readonly output?: readonly {
    type: string
    name?: string
    arguments?: string
    content?: { text: string }[]
  }[]
  readonly content?: readonly { type: string; text?: string; name?: string; input?: unknown }[]
  readonly message?: Said
  readonly response?: string
  readonly delta?: { readonly text?: string } | string
}

const tokens = 4
/** Room for a whole answer. */
const formedTokens = 40
const temperature = 0
const schema = {
  type: 'object',
  properties: { word: { enum: ['yes', 'no', 'maybe'] }, count: { enum: [1, 2, 3] } },
  required: ['word', 'count'],
  additionalProperties: false,
}
const note = { name: 'note', description: 'Writes a note', parameters: schema }

const chat = (content: string): object[] => [{ role: 'user', content }]
const parse = (text: string): Parsed => JSON.parse(text) as Parsed

function events(text: string): readonly Parsed[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => parse(line.slice(6)))
}

const lines = (text: string): readonly Parsed[] => text.trim().split('\n').map(parse)

/** A name and arguments, however a protocol writes them; blanks between the parts are the model's own. */
function called(name: string | undefined, given: unknown): string {
  const value: unknown = typeof given === 'string' ? JSON.parse(given) : given
  return `${name ?? ''} ${JSON.stringify(value)}`
}

const compact = (text: string): string => JSON.stringify(JSON.parse(text))

function streamedCall(text: string): string {
  const calls = events(text).flatMap(({ choices }) => choices?.[0]?.delta?.tool_calls ?? [])
  const given = calls.map((call) => String(call.function.arguments)).join('')
  return called(calls[0]?.function.name, given)
}

const messagesBody =
  (stream: boolean): Form['body'] =>
  ({ model, prompt }) => ({
    model,
    messages: chat(prompt),
    max_tokens: tokens,
    temperature,
    stream,
  })

const plain: readonly Form[] = [false, true].flatMap((stream): Form[] => [
  {
    name: `chat${stream ? ' stream' : ''}`,
    kind: 'chat',
    path: '/v1/chat/completions',
    body: messagesBody(stream),
    read: (text) =>
      stream
        ? events(text)
            .map(({ choices }) => choices?.[0]?.delta?.content ?? '')
            .join('')
        : (parse(text).choices?.[0]?.message?.content ?? ''),
  },
  {
    name: `responses${stream ? ' stream' : ''}`,
    kind: 'chat',
    path: '/v1/responses',
    body: ({ model, prompt }) => ({
      model,
      input: prompt,
      max_output_tokens: tokens,
      temperature,
      stream,
      store: false,
    }),
    read: (text) =>
      stream
        ? events(text)
            .map(({ delta }) => (typeof delta === 'string' ? delta : ''))
            .join('')
        : (parse(text).output?.[0]?.content?.[0]?.text ?? ''),
  },
  {
    name: `messages${stream ? ' stream' : ''}`,
    kind: 'chat',
    path: '/v1/messages',
    body: messagesBody(stream),
    read: (text) =>
      stream
        ? events(text)
            .map(({ delta }) => (typeof delta === 'object' ? (delta.text ?? '') : ''))
            .join('')
        : (parse(text).content?.[0]?.text ?? ''),
  },
  {
    name: `ollama chat${stream ? ' stream' : ''}`,
    kind: 'chat',
    path: '/api/chat',
    body: ({ model, prompt }) => ({
      model,
      messages: chat(prompt),
      stream,
      options: {
        num_predict: tokens,
        temperature,
      },
    }),
    read: (text) =>
      lines(text)
        .map(({ message }) => message?.content ?? '')
        .join(''),
  },
  {
    name: `ollama generate${stream ? ' stream' : ''}`,
    kind: 'chat',
    path: '/api/generate',
    body: ({ model, prompt }) => ({
      model,
      prompt,
      stream,
      options: {
        num_predict: tokens,
        temperature,
      },
    }),
    read: (text) =>
      lines(text)
        .map(({ response }) => response ?? '')
        .join(''),
  },
  {
    name: `completions${stream ? ' stream' : ''}`,
    kind: 'text',
    path: '/v1/completions',
    body: ({ model, prompt }) => ({ model, prompt, max_tokens: tokens, temperature, stream }),
    read: (text) =>
      (stream ? events(text) : [parse(text)])
        .map(({ choices }) => choices?.[0]?.text ?? '')
        .join(''),
  },
])

const formed: readonly Form[] = [
  {
    name: 'chat with a schema',
    kind: 'schema',
    path: '/v1/chat/completions',
    body: ({ model, prompt }) => ({
      model,
      messages: chat(prompt),
      max_tokens: formedTokens,
      temperature,
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'it',
          schema,
        },
      },
    }),
    read: (text) => compact(parse(text).choices?.[0]?.message?.content ?? ''),
  },
  {
    name: 'responses with a schema',
    kind: 'schema',
    path: '/v1/responses',
    body: ({ model, prompt }) => ({
      model,
      input: prompt,
      max_output_tokens: formedTokens,
      temperature,
      store: false,
      text: {
        format: {
          type: 'json_schema',
          name: 'it',
          schema,
        },
      },
    }),
    read: (text) => compact(parse(text).output?.[0]?.content?.[0]?.text ?? ''),
  },
  {
    name: 'ollama chat with a format',
    kind: 'schema',
    path: '/api/chat',
    body: ({ model, prompt }) => ({
      model,
      messages: chat(prompt),
      stream: false,
      format: schema,
      options: {
        num_predict: formedTokens,
        temperature,
      },
    }),
    read: (text) => compact(parse(text).message?.content ?? ''),
  },
]

const calling: readonly Form[] = [
  ...[false, true].map((stream): Form => ({
    name: `chat with a tool${stream ? ' stream' : ''}`,
    kind: 'tool',
    path: '/v1/chat/completions',
    body: ({ model, prompt }) => ({
      model,
      messages: chat(prompt),
      max_tokens: 2 * formedTokens,
      temperature,
      stream,
      tools: [
        {
          type: 'function',
          function: note,
        },
      ],
      tool_choice: {
        type: 'function',
        function: { name: 'note' },
      },
      parallel_tool_calls: false,
    }),
    read: (text) => {
      if (stream) return streamedCall(text)
      const [call] = parse(text).choices?.[0]?.message?.tool_calls ?? []
      return called(call?.function.name, call?.function.arguments)
    },
  })),
  {
    name: 'messages with a tool',
    kind: 'tool',
    path: '/v1/messages',
    body: ({ model, prompt }) => ({
      model,
      messages: chat(prompt),
      max_tokens: 2 * formedTokens,
      temperature,
      tools: [
        {
          name: note.name,
          description: note.description,
          input_schema: schema,
        },
      ],
      tool_choice: {
        type: 'tool',
        name: 'note',
        disable_parallel_tool_use: true,
      },
    }),
    read: (text) => {
      const use = parse(text).content?.find(({ type }) => type === 'tool_use')
      return called(use?.name, use?.input)
    },
  },
]

export const forms: readonly Form[] = [...plain, ...formed, ...calling]
