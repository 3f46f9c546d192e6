// bushel pull: fetches a model from the hub into the Hugging Face cache.
import type { Command } from 'commander'
import { formatBytes } from '../../core/units.ts'
import { hubCacheDir } from '../../models/hub-cache.ts'
import { PullError, pullModel } from '../../models/hub-pull.ts'
import { type CliContext, UserError } from '../command.ts'
import { createProgress } from '../setup/progress.ts'

export function register(command: Command, context: CliContext): void {
  command
    .argument('<name>', 'ORG/NAME on the hub')
    .option('--revision <revision>', 'branch, tag or commit', 'main')
    .addHelpText(
      'after',
      '\nExample:\n  bushel pull mlx-community/Qwen3-8B-4bit\nHF_ENDPOINT, HF_TOKEN and HF_HOME are honoured.',
    )
    .action(async (name: string, options: { revision: string; json?: boolean }) => {
      const progress = createProgress(context.out, (text) => void process.stderr.write(text))
      progress.phase(`pulling ${name}`)
      try {
        const folder = await pullModel({
          name,
          revision: options.revision,
          cacheDir: hubCacheDir(context.env),
          endpoint: context.env['HF_ENDPOINT'] ?? 'https://huggingface.co',
          ...(context.env['HF_TOKEN'] === undefined ? {} : { token: context.env['HF_TOKEN'] }),
          progress: ({ phase, file, doneBytes, totalBytes }) =>
            progress.update(
              `${phase} ${file}  ${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}`,
            ),
        })
        progress.done()
        if (options.json === true) context.out.json({ name, folder })
        else context.out.result(`${name} is in ${folder}`)
      } catch (error) {
        throw error instanceof PullError ? new UserError(error.message, { cause: error }) : error
      }
    })
}
