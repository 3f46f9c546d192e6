// Results go to stdout, everything else to stderr, so that pipes carry only what was asked for.
import type { Output } from './command.ts'

export function createOutput(streams: {
  stdout: NodeJS.WritableStream
  stderr: NodeJS.WritableStream & { isTTY?: boolean }
}): Output {
  const line = (text: string): string => (text.endsWith('\n') ? text : `${text}\n`)
  return {
    result: (text) => void streams.stdout.write(line(text)),
    json: (value) => void streams.stdout.write(`${JSON.stringify(value, null, 2)}\n`),
    note: (text) => void streams.stderr.write(line(text)),
    isTty: streams.stderr.isTTY === true,
  }
}
