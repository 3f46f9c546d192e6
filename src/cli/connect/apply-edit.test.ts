import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse as parseToml } from 'smol-toml'
import { applyEdit } from './apply-edit.ts'
import { type Target, clients } from './clients.ts'

const target: Target = { url: 'http://127.0.0.1:28743', port: 28743, model: 'org/Model', key: null }

function edited(name: string, before: string | null): string {
  const edit = clients[name]?.edit?.(target)
  assert(edit !== undefined)
  const outcome = applyEdit(before, edit)
  assert(outcome.kind === 'edited', JSON.stringify(outcome))
  return outcome.text
}

test('applyEdit() keeps what else a JSON file holds', () => {
  const before = '{"theme":"dark","env":{"PATH_EXTRA":"/x","ANTHROPIC_MODEL":"old"}}'
  const after = JSON.parse(edited('claude', before)) as {
    theme: string
    env: Record<string, string>
  }
  assert.equal(after.theme, 'dark')
  assert.equal(after.env['PATH_EXTRA'], '/x')
  assert.equal(after.env['ANTHROPIC_MODEL'], 'org/Model')
  assert.equal(after.env['ANTHROPIC_BASE_URL'], target.url)
})

test('applyEdit() keeps comments, order and other sections of a TOML file', () => {
  const before = '# mine\nmodel = "gpt-5" \napproval = "never"\n\n[tools]\nweb = true # yes\n'
  const after = edited('codex', before)
  assert.match(
    after,
    /^model_provider = "bushel"\n# mine\nmodel = "org\/Model"\napproval = "never"\n/,
  )
  assert.match(after, /\[tools\]\nweb = true # yes\n/)
  const parsed = parseToml(after) as { model_providers: { bushel: { wire_api: string } } }
  assert.equal(parsed.model_providers.bushel.wire_api, 'responses')
})

test('applyEdit() done twice changes nothing the second time', () => {
  for (const name of ['claude', 'codex', 'opencode']) {
    const once = edited(name, null)
    const edit = clients[name]?.edit?.(target)
    assert(edit !== undefined)
    assert.equal(applyEdit(once, edit).kind, 'unchanged')
  }
})

test('applyEdit() replaces its own section when the address has changed', () => {
  const once = edited(
    'codex',
    '[model_providers.bushel]\nname = "B"\nbase_url = "http://old/v1"\n\n[other]\na = 1\n',
  )
  assert.ok(!once.includes('http://old'))
  assert.match(once, /\n\n\[other\]\na = 1\n$/)
})

test('applyEdit() refuses what it cannot read', () => {
  const claude = clients['claude']?.edit?.(target)
  const codex = clients['codex']?.edit?.(target)
  assert(claude !== undefined && codex !== undefined)
  assert.equal(applyEdit('{ // comment\n}', claude).kind, 'refused')
  assert.equal(applyEdit('[1]', claude).kind, 'refused')
  assert.equal(applyEdit('model = \n', codex).kind, 'refused')
})

test('every client is shown the address and, where it takes one, the model', () => {
  for (const [name, client] of Object.entries(clients)) {
    const shown = client.show(target)
    assert.match(shown, /28743/, name)
    if (name !== 'xcode' && name !== 'open-webui') assert.match(shown, /org\/Model/, name)
  }
})
