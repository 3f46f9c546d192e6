// The flags that several commands share, spelled once.
import type { Command } from 'commander'

export function addSettingFlags(command: Command): Command {
  return command
    .option('--name <name>', 'how this machine is called (default: its host name)')
    .option('--port <port>', 'port of API and page; peers use the next one (default 28743)')
    .option('--listen <address>', 'address to listen on; any but loopback needs an API key')
    .option('--memory <size>', 'how much memory to lend, for example 16GB')
    .option('--model <model>', 'serve this model: a folder, a .gguf file, a name, or none')
    .option('--role <role>', 'always (default), sometimes (laptops) or client (no ranks)')
    .option('--peer <host...>', 'addresses of other machines, where discovery cannot reach')
    .option('--ollama [port]', "answer Ollama's clients too, on port 11434 unless another is given")
    .option('--discovery <on|off>', 'look for machines nearby (default on)')
}
