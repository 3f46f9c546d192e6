// What this machine knows of itself when its daemon starts.
import { cryptoEntropy } from '../../adapters/crypto-entropy.ts'
import type { Identity } from '../../adapters/identity.ts'
import { roster } from '../../core/cluster/desired.ts'
import type { ModelRef } from '../../core/cluster/group-plan.ts'
import type { SelfState } from '../../core/cluster/state.ts'
import type { JournalContent } from '../../wire/journal-file.ts'
import type { Settings } from '../settings.ts'

export function describeSelf(about: {
  identity: Identity
  settings: Settings
  version: string
  journal: JournalContent | null
  models: readonly ModelRef[]
}): SelfState {
  const { identity, settings, version, journal, models } = about
  // The name under which the cluster knows it, unless its owner says otherwise.
  const known = journal === null ? undefined : roster(journal.registers).get(identity.id)?.name
  return {
    id: identity.id,
    name: settings.nameGiven ? settings.name : (known ?? settings.name),
    role: settings.role,
    boot: cryptoEntropy.hex(8),
    // Above the last life we remember, and above those we may have forgotten with a lost disk.
    incarnation: Math.max((journal?.incarnation ?? 0) + 1, Math.floor(Date.now() / 1000)),
    revision: 1,
    version,
    platform: `${process.platform}-${process.arch}`,
    computesIn: process.platform === 'darwin' ? 'stored' : 'float32',
    memoryLendBytes: settings.memoryLendBytes,
    models,
    accepts: { ok: true, reason: '' },
  }
}
