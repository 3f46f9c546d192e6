import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryStorage } from '../browser-storage.ts'
import { KeyRing } from './key-ring.ts'

test('KeyRing asks when the server refuses, and keeps the key for the session', () => {
  const storage = memoryStorage()
  const ring = new KeyRing(storage)
  ring.refuse(null)
  assert.deepEqual(ring.getState(), { key: null, isAsking: true, isRejected: false })
  ring.keep('k1')
  assert.deepEqual(ring.getState(), { key: 'k1', isAsking: false, isRejected: false })
  assert.equal(new KeyRing(storage).getState().key, 'k1')
})

test('KeyRing says that a kept key was rejected', () => {
  const ring = new KeyRing(memoryStorage())
  ring.keep('wrong')
  ring.refuse('wrong')
  assert.deepEqual(ring.getState(), { key: 'wrong', isAsking: true, isRejected: true })
})

test('KeyRing ignores a refusal of a request that was sent with an older key', () => {
  const ring = new KeyRing(memoryStorage())
  ring.keep('new')
  ring.refuse(null)
  assert.equal(ring.getState().isAsking, false)
})

test('KeyRing does not ask again on its own once it was dismissed', () => {
  const ring = new KeyRing(memoryStorage())
  ring.refuse(null)
  ring.dismiss()
  ring.refuse(null)
  assert.equal(ring.getState().isAsking, false)
  ring.ask()
  assert.equal(ring.getState().isAsking, true)
})
