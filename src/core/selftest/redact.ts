// Takes names, serials and addresses out of tool output, each always by the same stand-in, so that what
// belongs together still fits: both ends of a cable, a port and its GID, two addresses of one subnet.
// The stand-ins come from a keyed digest; without the key nobody gets back.
import { numberToIpv4, ipv4ToNumber } from '../machine-facts/ipv4.ts'

export interface Redactor {
  /** The text without anything that names a person, a machine or a place in a network. */
  readonly text: (text: string) => string
  readonly name: (name: string) => string
  /** Everything that was taken out and must not appear anywhere in the result. */
  readonly removed: () => ReadonlySet<string>
}

export interface RedactorOptions {
  /** Sixty-four hex digits from a secret and the text. */
  readonly digest: (text: string) => string
  /** Host names, user names, names that people gave to things. */
  readonly names: readonly string[]
}

/** Words that are no secret, though a machine or a user may be called so; taking them out would hurt. */
const commonWords: ReadonlySet<string> = new Set(
  'root admin user guest ubuntu debian localhost node python mac macbook studio mini imac apple linux ethernet wi-fi thunderbolt'.split(
    ' ',
  ),
)

const productPattern = /(Mac Studio|MacBook Pro|MacBook Air|Mac mini|Mac Pro|iMac|Studio Display)/

export function createRedactor(options: RedactorOptions): Redactor {
  const removed = new Set<string>()
  const hex = (kind: string, value: string, digits: number): string =>
    options.digest(`${kind}:${value}`).slice(0, digits)
  const replace = (original: string, standIn: string): string => {
    removed.add(original)
    return standIn
  }
  const names = [...new Set(options.names.flatMap(nameParts))]
    .filter((name) => name.length >= 2 && !commonWords.has(name.toLowerCase()))
    .toSorted((a, b) => b.length - a.length)
  // A name that holds the name of a product goes first, before products are set aside.
  const [whole, plain] = [true, false].map((holds) =>
    names.filter((name) => productPattern.test(name) === holds),
  ) as [string[], string[]]
  const name = (text: string): string => replace(text, `name-${hex('name', text, 6)}`)
  const uuid = (text: string): string => {
    const fresh = hex('uuid', text.toLowerCase(), 32)
    const shaped = fresh.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
    return replace(text, text === text.toUpperCase() ? shaped.toUpperCase() : shaped)
  }
  const mac = (text: string): string => {
    if (/^(00:){5}00$|^(ff:){5}ff$/i.test(text)) return text
    const digits = hex('mac', text.toLowerCase(), 10)
    return replace(text, `02:${(digits.match(/../g) ?? []).join(':')}`)
  }
  const rules: readonly (readonly [RegExp, (...parts: string[]) => string])[] = [
    [
      /("(?:serial_number|platform_UUID|provisioning_UDID)"\s*:\s*")([^"]*)/g,
      (_, key = '', value = '') => key + (value === '' ? '' : replace(value, 'X'.repeat(10))),
    ],
    [/^(Serial\s*: )(\S+)$/gm, (_, key = '', value = '') => key + replace(value, '0')],
    [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, uuid],
    [
      /("switch_uid_key"\s*:\s*"0x|\bUID: 0x)([0-9A-F]{16})/gi,
      (_, key = '', uid = '') => key + replace(uid, switchUid(uid, hex)),
    ],
    [
      /((?:node|sys_image)_guid:\s*)((?:[0-9a-f]{4}:){3}[0-9a-f]{4})/g,
      (_, key = '', guid = '') => key + nodeGuid(guid, hex, replace),
    ],
    [
      /^(\s*rdma_\S+\s+)([0-9a-f]{16})(\s*)$/gm,
      (_, key = '', guid = '', end = '') => key + nodeGuid(guid, hex, replace) + end,
    ],
    [/(?<![0-9a-f:])(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?![0-9a-f:])/gi, mac],
    [
      /\benx[0-9a-f]{12}\b/g,
      (text) => `enx${mac((text.slice(3).match(/../g) ?? []).join(':')).replaceAll(':', '')}`,
    ],
    [
      /(?<![0-9A-Za-z:.])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![0-9A-Za-z:.])/gi,
      (text) => ipv6(text, mac, hex),
    ],
    [/(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])/g, (text) => ipv4(text, hex)],
    [
      /((?:\/Users|\/home)\/)([^/\s":]+)/g,
      (_, folder = '', user = '') => folder + (user === 'Shared' ? user : replace(user, 'user')),
    ],
    [/\b[0-9a-f]{32,}\b/g, (text) => replace(text, hex('id', text, 32))],
  ]
  return {
    name,
    removed: () => removed,
    text: (text) => {
      const strip = (list: readonly string[], from: string): string =>
        list.reduce((all, one) => replaceWord(all, one, name), from)
      const named = betweenProducts(strip(whole, text), (part) => strip(plain, part))
      return rules.reduce((all, [pattern, standIn]) => all.replaceAll(pattern, standIn), named)
    },
  }
}

type Hex = (kind: string, value: string, digits: number) => string

/** "Mac Studio" is a product, even on the desk of someone whose Mac is called "Studio". */
function betweenProducts(text: string, change: (text: string) => string): string {
  return text
    .split(productPattern)
    .map((part, index) => (index % 2 === 1 ? part : change(part)))
    .join('')
}

/** "Bob's MacBook Pro" gives Bob away as well. */
function nameParts(name: string): readonly string[] {
  const owner = /^(.{2,}?)['’]s\b/.exec(name)?.[1]
  const hyphened = /^(.{2,}?)s-(?:MacBook|Mac|iMac)/.exec(name)?.[1]
  return [
    name,
    ...(owner === undefined ? [] : [owner]),
    ...(hyphened === undefined ? [] : [hyphened]),
  ]
}

function replaceWord(text: string, word: string, standIn: (word: string) => string): string {
  const escaped = word.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
  return text.replaceAll(new RegExp(`(?<![A-Za-z0-9])${escaped}(?![A-Za-z0-9])`, 'g'), () =>
    standIn(word),
  )
}

function switchUid(uid: string, hex: Hex): string {
  return `05AC${hex('switch', uid.toUpperCase(), 12)}`.toUpperCase()
}

/** The GUID is the switch UID with its bytes reversed, and has to stay so. */
function nodeGuid(
  guid: string,
  hex: Hex,
  replace: (original: string, standIn: string) => string,
): string {
  if (/^[0:]+$/.test(guid)) return guid
  const reversed = (digits: string): string => (digits.match(/../g) ?? []).toReversed().join('')
  const uid = reversed(guid.replaceAll(':', '')).toUpperCase()
  const fresh = reversed(switchUid(uid, hex)).toLowerCase()
  return replace(guid, guid.includes(':') ? (fresh.match(/.{4}/g) ?? []).join(':') : fresh)
}

/**
 * An address made from a hardware address stays made from its stand-in; other link-local ones stay
 * link-local; the rest moves into the range for documentation.
 */
function ipv6(text: string, mac: (text: string) => string, hex: Hex): string {
  if (!text.includes('::') && text.split(':').length !== 8) return text
  if (/^(::|::1|fe80::[12]?)$/i.test(text) || /^::ffff/i.test(text)) return text
  const groups = text
    .split(':')
    .slice(-4)
    .map((group) => group.padStart(4, '0'))
  const interfaceId = groups.join('').toLowerCase()
  const made = /^(..)(..)(..)fffe(..)(..)(..)$/.exec(interfaceId)
  if (/^fe80:/i.test(text) && made !== null) {
    const [first = '', ...others] = made.slice(1)
    const flipped = (Number.parseInt(first, 16) ^ 2).toString(16).padStart(2, '0')
    const [fresh = '', ...rest] = mac([flipped, ...others].join(':')).split(':')
    const back = (Number.parseInt(fresh, 16) ^ 2).toString(16).padStart(2, '0')
    return `fe80::${groupsOf([back, ...rest.slice(0, 2), 'ff', 'fe', ...rest.slice(2)].join(''))}`
  }
  const fresh = groupsOf(hex('ipv6', text.toLowerCase(), 16))
  return `${/^fe80:/i.test(text) ? 'fe80' : '2001:db8'}::${fresh}`
}

const groupsOf = (digits: string): string =>
  (digits.match(/.{4}/g) ?? []).map((group) => group.replace(/^0+(?=.)/, '')).join(':')

/**
 * Octets are changed by exclusive or with a key that depends on those before them: two addresses share
 * exactly as many leading bits afterwards as before. The last octet stays, and so do networks of special
 * meaning: loopback, masks, self-assigned and private ranges keep their first part.
 */
function ipv4(text: string, hex: Hex): string {
  const value = ipv4ToNumber(text)
  if (value === null || /^(0|127|255|22[4-9]|23\d)\./.test(text)) return text
  const octets = text.split('.').map(Number)
  const kept = keptOctets(text)
  const fresh = octets.map((octet, index) => {
    if (index < kept || index === 3) return octet
    const parent = octets.slice(0, index).join('.')
    // Never zero: a key of zero would leave the address as it was.
    const key = 1 + (Number.parseInt(hex('ipv4', parent, 4), 16) % 255)
    return octet ^ key
  })
  if (kept === 0) fresh[0] = 198
  return numberToIpv4(fresh.reduce((sum, octet) => sum * 256 + octet, 0))
}

function keptOctets(text: string): number {
  if (
    /^(192\.168|169\.254|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])|172\.(1[6-9]|2\d|3[01]))\./.test(
      text,
    )
  )
    return 2
  return text.startsWith('10.') ? 1 : 0
}
