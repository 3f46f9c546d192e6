// Asks a daemon for an answer to each schema and holds what ended by itself against ajv.
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { type MadeSchema, madeSchemas } from './schemas.ts'

export interface StructuredReport {
  readonly valid: number
  readonly cut: number
  readonly refused: readonly string[]
}

interface Reply {
  readonly choices?: readonly {
    readonly finish_reason: string
    readonly message: { readonly content: string }
  }[]
  readonly error?: { readonly message: string; readonly code: string }
}

const formats = {
  date: /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/,
  uuid: /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i,
  ipv4: /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/,
}
const atOnce = 8

/** Where the chat API is: an address, or the socket that leads to a host's daemon. */
export type Where = string | { readonly socketPath: string }

export async function tryStructured(
  where: Where,
  { model, count }: { model: string; count: number },
): Promise<StructuredReport> {
  const ajv = new Ajv2020({ strict: false, formats })
  const report = { valid: 0, cut: 0, refused: [] as string[] }
  const waiting = madeSchemas(count).entries()
  const worker = async (): Promise<void> => {
    for (const [number, made] of waiting) {
      const reply = await ask(where, { model, made, number })
      judge(ajv, made, reply, report)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return report
}

async function ask(
  where: Where,
  { model, made, number }: { model: string; made: MadeSchema; number: number },
): Promise<Reply> {
  const { status, text } = await post(where, {
    model,
    messages: [{ role: 'user', content: `Give me example ${number} as JSON.` }],
    response_format: { type: 'json_schema', json_schema: { name: 'it', schema: made.schema } },
    max_tokens: 64,
    temperature: number % 2 === 0 ? 0 : 1,
    seed: number,
  })
  assert.ok(status === 200 || status === 400, `${made.name}: ${status}`)
  return JSON.parse(text) as Reply
}

function post(where: Where, body: object): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(typeof where === 'string' ? where : 'http://localhost')
  const to = typeof where === 'string' ? { host: hostname, port } : { socketPath: where.socketPath }
  return new Promise((done, fail) => {
    const headers = { host: 'localhost', 'content-type': 'application/json' }
    const path = '/v1/chat/completions'
    const outgoing = request({ ...to, path, method: 'POST', headers }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.on('end', () => done({ status: response.statusCode ?? 0, text }))
    })
    outgoing.on('error', fail)
    outgoing.end(JSON.stringify(body))
  })
}

function judge(
  ajv: Ajv2020,
  made: MadeSchema,
  reply: Reply,
  report: { valid: number; cut: number; refused: string[] },
): void {
  const about = `${made.name} ${JSON.stringify(made.schema)}`
  if (reply.error !== undefined) {
    assert.equal(reply.error.code, 'invalid_schema', about)
    assert.ok(made.refused !== null, `${about} was refused: ${reply.error.message}`)
    assert.ok(reply.error.message.includes(made.refused), reply.error.message)
    report.refused.push(made.refused)
    return
  }
  assert.equal(made.refused, null, `${about} was taken`)
  const [choice] = reply.choices ?? []
  assert(choice !== undefined)
  if (choice.finish_reason === 'length') {
    report.cut += 1
    return
  }
  assert.equal(choice.finish_reason, 'stop', about)
  const { content } = choice.message
  const check = ajv.compile(made.schema as object)
  assert.ok(check(JSON.parse(content)), `${about}\n${content}\n${ajv.errorsText(check.errors)}`)
  report.valid += 1
}
