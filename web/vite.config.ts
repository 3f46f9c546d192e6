// How the page is built: plain files with hashed names, no inline scripts (the gateway forbids them).
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/** For "vite web" while working on the page: everything else is asked of a running daemon. */
const daemon = process.env['BUSHEL_URL'] ?? 'http://127.0.0.1:28743'

export default defineConfig({
  plugins: [react()],
  build: { target: 'es2022', modulePreload: { polyfill: false }, reportCompressedSize: false },
  server: { proxy: { '/v1': daemon, '/cluster': daemon } },
})
