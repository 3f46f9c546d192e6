// What went wrong with a request, and what the person at the page can do about it.
import { assertNever } from '../assert-never.ts'

export type Failure =
  /** The server could not be reached at all. */
  | { readonly kind: 'unreachable' }
  /** The stream ended before the answer did. */
  | { readonly kind: 'cut-off' }
  /** The server answered with something that is no answer of Bushel's. */
  | { readonly kind: 'unreadable' }
  /** The server refused, or failed inside a stream (then without a status). */
  | {
      readonly kind: 'refused'
      readonly status: number | null
      readonly code: string | null
      readonly message: string
      readonly retryAfterSeconds: number | null
    }

export interface Explanation {
  readonly title: string
  readonly detail: string
  /** What to do next. */
  readonly advice: string
}

/** Thrown by the edges of the page, caught where a request was made. */
export class RequestFailed extends Error {
  override readonly name = 'RequestFailed'
  readonly failure: Failure

  constructor(failure: Failure) {
    super(failure.kind)
    this.failure = failure
  }
}

export function isKeyMissing(failure: Failure): boolean {
  return failure.kind === 'refused' && failure.status === 401
}

/** Reads OpenAI's error object; a body of any other shape still gives a failure. */
export function refusalOf(
  body: unknown,
  from: { status: number | null; retryAfter: string | null },
): Failure {
  const error = (body as { error?: { message?: unknown; code?: unknown } } | null)?.error
  if (typeof error?.message !== 'string') return { kind: 'unreadable' }
  const seconds = Number(from.retryAfter ?? Number.NaN)
  return {
    kind: 'refused',
    status: from.status,
    code: typeof error.code === 'string' ? error.code : null,
    message: error.message,
    retryAfterSeconds: Number.isFinite(seconds) && seconds >= 0 ? seconds : null,
  }
}

const adviceByCode: Readonly<Record<string, string>> = {
  context_length_exceeded:
    'Start a new chat, shorten the question, or pick a model with a longer context.',
  request_too_large: 'Shorten the question or start a new chat.',
  model_not_found: 'Pick another model above, then try again.',
  model_not_ready: 'The status area shows what the model waits for. Try again when it is ready.',
  stopping: 'Start Bushel again with “bushel up”, then try again.',
  invalid_api_key: 'Enter an API key of this server, then try again.',
  host_not_allowed:
    'Open the page under a name that the server knows, or add this one to its config.',
}

export function explainFailure(failure: Failure): Explanation {
  switch (failure.kind) {
    case 'unreachable':
      return {
        title: 'Bushel does not answer',
        detail: 'The page could not reach the server it came from.',
        advice:
          'See whether it runs with “bushel status”, start it with “bushel up”, then try again.',
      }
    case 'cut-off':
      return {
        title: 'The answer broke off',
        detail: 'The connection ended before the answer did. What had arrived is kept.',
        advice: 'Try again; “bushel logs” says what happened to the server.',
      }
    case 'unreadable':
      return {
        title: 'The reply made no sense',
        detail: 'Something answered that does not speak like Bushel, perhaps a proxy in between.',
        advice: 'Reload the page. If it stays so, look at “bushel logs”.',
      }
    case 'refused':
      return { title: titleOf(failure), detail: failure.message, advice: adviceOf(failure) }
    default:
      return assertNever(failure)
  }
}

type Refusal = Extract<Failure, { kind: 'refused' }>

function titleOf({ status, code }: Refusal): string {
  if (status === 401) return 'This server asks for an API key'
  if (status === 429) return 'The models are busy'
  if (code === 'context_length_exceeded') return 'The conversation is too long for this model'
  if (code === 'model_not_found') return 'The model is not here'
  if (code === 'model_not_ready') return 'The model did not become ready'
  if (status !== null && status < 500) return 'The question was refused'
  return 'The answer failed'
}

function adviceOf({ status, code, retryAfterSeconds }: Refusal): string {
  const known = adviceByCode[code ?? '']
  if (known !== undefined) return known
  if (status === 429 || status === 503) {
    return retryAfterSeconds === null
      ? 'Try again in a moment.'
      : `Try again in ${Math.max(1, Math.ceil(retryAfterSeconds))} s.`
  }
  if (status !== null && status < 500)
    return 'Change the question as the message says, then try again.'
  return 'Try again. If it fails again, “bushel logs” says why.'
}
