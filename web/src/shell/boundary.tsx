// Catches what the page itself got wrong, so that a person sees a sentence and not a blank window.
import { Component, type ReactNode } from 'react'

export class Boundary extends Component<{ children: ReactNode }, { failed: Error | null }> {
  override state = { failed: null as Error | null }

  static getDerivedStateFromError(error: unknown): { failed: Error } {
    return { failed: error instanceof Error ? error : new Error(String(error)) }
  }

  override render(): ReactNode {
    const { failed } = this.state
    if (failed === null) return this.props.children
    return (
      <main className="broken" role="alert">
        <h1>The page has failed</h1>
        <p>Your chats are kept in this browser. Reload to go on.</p>
        <pre>{failed.message}</pre>
        <button type="button" className="button" onClick={() => window.location.reload()}>
          Reload
        </button>
      </main>
    )
  }
}
