// bushel completion: a script for the shell, made from the command tree itself.
import type { Command } from 'commander'
import { type CliContext, UserError, exitCodes } from '../command.ts'
import { buildProgram } from '../program.ts'

export function register(command: Command, context: CliContext): void {
  command
    .argument('<shell>', 'bash, zsh or fish')
    .addHelpText('after', '\nExample:\n  bushel completion zsh > ~/.zfunc/_bushel')
    .action(async (shell: string) => {
      const program = await buildProgram(context, () => true)
      const commands = program.commands.map((sub) => ({
        name: sub.name(),
        summary: sub.summary().replaceAll("'", ''),
        flags: sub.options.flatMap((option) => option.long ?? []),
      }))
      const make = scripts[shell]
      if (make === undefined) {
        throw new UserError(`"${shell}" is not known; choose bash, zsh or fish`, {
          exitCode: exitCodes.usage,
        })
      }
      context.out.result(make(commands))
    })
}

type Listed = readonly { name: string; summary: string; flags: readonly string[] }[]

const scripts: Readonly<Record<string, (commands: Listed) => string>> = {
  bash: (commands) => `_bushel() {
  local word=\${COMP_WORDS[COMP_CWORD]} command=\${COMP_WORDS[1]}
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${commands.map((sub) => sub.name).join(' ')}" -- "$word"))
    return
  fi
  case $command in
${commands.map((sub) => `    ${sub.name}) COMPREPLY=($(compgen -W "${sub.flags.join(' ')}" -- "$word")) ;;`).join('\n')}
  esac
}
complete -o default -F _bushel bushel`,
  zsh: (commands) => `#compdef bushel
_bushel() {
  local -a commands
  commands=(
${commands.map((sub) => `    '${sub.name}:${sub.summary}'`).join('\n')}
  )
  if (( CURRENT == 2 )); then _describe command commands; return; fi
  case $words[2] in
${commands.map((sub) => `    ${sub.name}) compadd -- ${sub.flags.join(' ')}; _files ;;`).join('\n')}
  esac
}
compdef _bushel bushel`,
  fish: (commands) =>
    commands
      .flatMap((sub) => [
        `complete -c bushel -n __fish_use_subcommand -a ${sub.name} -d '${sub.summary}'`,
        ...sub.flags.map(
          (flag) =>
            `complete -c bushel -n '__fish_seen_subcommand_from ${sub.name}' -l ${flag.slice(2)}`,
        ),
      ])
      .join('\n'),
}
