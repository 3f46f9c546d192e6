// The outline that both forms of system_profiler share, before anything is concluded from it.

export interface RawNode {
  readonly name: string
  /** Plain values under Apple's JSON keys. */
  readonly values: Readonly<Record<string, string>>
  /** The port of the case (on a bus) or the upstream port (on a device). */
  readonly port: Readonly<Record<string, string>> | null
  readonly services: RawServices | null
  /** Whether it was printed to its end: half a Mac looks like a dock. */
  readonly complete: boolean
  readonly children: readonly RawNode[]
}

export interface RawServices {
  /** protocol_id_key of each service; null where the output leaves it out. */
  readonly protocolIds: readonly (number | null)[]
  /** Whether the list was printed to its end, so that a missing service is a missing service. */
  readonly complete: boolean
}

/** Keys met so far on any macOS; others are reported so that a newer system is noticed. */
const familiarKeys: ReadonlySet<string> = new Set([
  '_items',
  '_name',
  'current_link_width_key',
  'current_speed_key',
  'device_id_key',
  'device_name_key',
  'device_revision_key',
  'domain_uuid_key',
  'lc_version_key',
  'link_status_key',
  'micro_version_key',
  'mode_key',
  'receptacle_id_key',
  'receptacle_status_key',
  'receptacle_upstream_ambiguous_tag',
  'route_string_key',
  'services_title',
  'switch_uid_key',
  'switch_version_key',
  'vendor_id_key',
  'vendor_name_key',
])

export function isFamiliarKey(key: string): boolean {
  return familiarKeys.has(key) || /^receptacle_\d+_tag$/.test(key)
}
