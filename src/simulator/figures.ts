// What a run measures besides what it checks: how much there was of everything that must stay bounded.

export interface Figures {
  /** Cluster messages, beats apart, from one machine to another within ten seconds. */
  messagesPerPeerMost: number
  journalBytesMost: number
  /** Entries in one machine's state: peers, links, holdings, starts, failures. */
  stateEntriesMost: number
  /** Terms begun, and starts of one deployment, within a minute. */
  termsMost: number
  startsMost: number
  messages: number
  terms: number
  journalWrites: number
}

export function newFigures(): Figures {
  return {
    messagesPerPeerMost: 0,
    journalBytesMost: 0,
    stateEntriesMost: 0,
    termsMost: 0,
    startsMost: 0,
    messages: 0,
    terms: 0,
    journalWrites: 0,
  }
}
