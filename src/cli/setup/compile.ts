// Loads every command once, so that Node keeps the compiled code. A daemon that had to compile its own modules
// would keep the compiler's memory, half as much again, for as long as it runs.
import { registry } from '../registry.ts'

for (const command of Object.values(registry)) await command.load()
