// The settings of clients that people use: where each keeps them, and what they must say to reach Bushel.
import type { JsonValue } from '../../core/json.ts'

export interface Target {
  /** Without a path, such as http://127.0.0.1:28743. */
  readonly url: string
  readonly port: number
  readonly model: string
  /** Null where none is asked for; most clients want some text all the same. */
  readonly key: string | null
}

/** What a client's own file must hold; everything else in it stays. */
export type Edit =
  | { readonly kind: 'json'; readonly path: readonly string[]; readonly merge: JsonValue }
  | {
      readonly kind: 'toml'
      readonly path: readonly string[]
      readonly top: Readonly<Record<string, string>>
      readonly section: { readonly name: string; readonly lines: readonly string[] }
    }

export interface Client {
  readonly title: string
  /** What a person reads: settings to paste or steps to click. */
  readonly show: (target: Target) => string
  /** Null where the client keeps its settings out of reach. */
  readonly edit: ((target: Target) => Edit) | null
}

const anyKey = 'bushel'

function json(value: JsonValue): string {
  return JSON.stringify(value, null, 2)
}

function claudeEnv({ url, model, key }: Target): Record<string, string> {
  return {
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_AUTH_TOKEN: key ?? anyKey,
    ANTHROPIC_MODEL: model,
    ANTHROPIC_DEFAULT_OPUS_MODEL: model,
    ANTHROPIC_DEFAULT_SONNET_MODEL: model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  }
}

const claude: Client = {
  title: 'Claude Code',
  show: (target) =>
    `In ~/.claude/settings.json, whose "env" wins over the shell's:\n${json({ env: claudeEnv(target) })}`,
  edit: (target) => ({
    kind: 'json',
    path: ['.claude', 'settings.json'],
    merge: { env: claudeEnv(target) },
  }),
}

function codexEdit({ url, model, key }: Target): Extract<Edit, { kind: 'toml' }> {
  const quote = (text: string): string => JSON.stringify(text)
  return {
    kind: 'toml',
    path: ['.codex', 'config.toml'],
    top: { model: quote(model), model_provider: quote('bushel') },
    section: {
      name: 'model_providers.bushel',
      lines: [
        'name = "Bushel"',
        `base_url = ${quote(`${url}/v1`)}`,
        'wire_api = "responses"',
        ...(key === null ? [] : ['env_key = "BUSHEL_API_KEY"']),
      ],
    },
  }
}

const codex: Client = {
  title: 'Codex',
  show(target) {
    const { top, section } = codexEdit(target)
    const lines = Object.entries(top).map(([name, value]) => `${name} = ${value}`)
    const secret =
      target.key === null ? '' : `\n\nand in the shell:\nexport BUSHEL_API_KEY=${target.key}`
    return `In ~/.codex/config.toml:\n${[...lines, '', `[${section.name}]`, ...section.lines].join('\n')}${secret}`
  },
  edit: codexEdit,
}

function openCodeConfig({ url, model, key }: Target): JsonValue {
  return {
    $schema: 'https://opencode.ai/config.json',
    model: `bushel/${model}`,
    provider: {
      bushel: {
        npm: '@ai-sdk/openai-compatible',
        name: 'Bushel',
        options: { baseURL: `${url}/v1`, apiKey: key ?? anyKey },
        models: { [model]: { name: model } },
      },
    },
  }
}

const opencode: Client = {
  title: 'OpenCode',
  show: (target) => `In ~/.config/opencode/opencode.json:\n${json(openCodeConfig(target))}`,
  edit: (target) => ({
    kind: 'json',
    path: ['.config', 'opencode', 'opencode.json'],
    merge: openCodeConfig(target),
  }),
}

const openWebUi: Client = {
  title: 'Open WebUI',
  show: ({ url, key }) => `Start it with
  OPENAI_API_BASE_URL=${url}/v1 OPENAI_API_KEY=${key ?? anyKey} open-webui serve
or, where it already runs: Admin Panel → Settings → Connections → OpenAI API → +
  URL  ${url}/v1
  Key  ${key ?? anyKey}
In a container, this machine is http://host.docker.internal instead of 127.0.0.1; add that name to allowed_hosts in config.toml.`,
  edit: null,
}

const xcode: Client = {
  title: 'Xcode',
  show: ({ port, key }) => `Settings → Intelligence → Add a Model Provider → Locally Hosted
  Port         ${port}
  Description  Bushel
It asks this machine and sends no key${key === null ? '.' : ': it will be refused while an API key is set.'}`,
  edit: null,
}

const cline: Client = {
  title: 'Cline',
  show: ({ url, model, key }) => `In Cline's settings (the gear):
  API Provider  OpenAI Compatible
  Base URL      ${url}/v1
  API Key       ${key ?? anyKey}
  Model ID      ${model}`,
  edit: null,
}

const aiSdk: Client = {
  title: 'the AI SDK',
  show: ({ url, model, key }) => `import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText } from 'ai'

const bushel = createOpenAICompatible({
  name: 'bushel',
  baseURL: '${url}/v1',
  apiKey: '${key ?? anyKey}',
  includeUsage: true,
  supportsStructuredOutputs: true,
})
const { text } = await generateText({ model: bushel('${model}'), prompt: 'Hello' })`,
  edit: null,
}

const langchain: Client = {
  title: 'LangChain',
  show: ({ url, model, key }) => `import { ChatOpenAI } from '@langchain/openai'

const chat = new ChatOpenAI({
  model: '${model}',
  apiKey: '${key ?? anyKey}',
  configuration: { baseURL: '${url}/v1' },
})
const { text } = await chat.invoke('Hello')`,
  edit: null,
}

export const clients: Readonly<Record<string, Client>> = {
  claude,
  codex,
  'open-webui': openWebUi,
  xcode,
  cline,
  opencode,
  'ai-sdk': aiSdk,
  langchain,
}
