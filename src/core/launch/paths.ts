// Which paths may be written below the folder of a launch. Whoever sends them is trusted to run programs here,
// but a slip must not overwrite a file of the owner.

/** Why a path is refused; null when it stays inside the folder. */
export function pathFault(path: string): string | null {
  if (path === '') return 'the path is empty'
  if (path.includes('\0') || path.includes('\\'))
    return 'the path holds a character that is refused'
  if (path.startsWith('/')) return 'the path is absolute'
  const steps = path.split('/')
  if (steps.includes('..')) return 'the path leads out of the folder'
  return steps.some((step) => step === '' || step === '.') ? 'the path has an empty step' : null
}
