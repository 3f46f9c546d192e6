// Runs inside a host's network namespace: carries a Unix socket to the daemon's loopback port, so that tests
// outside can speak to it as a program on that host would.
import { connect, createServer } from 'node:net'

const [path, port] = process.argv.slice(2)
createServer({ allowHalfOpen: true }, (from) => {
  const to = connect({ host: '127.0.0.1', port: Number(port), allowHalfOpen: true })
  from.pipe(to).pipe(from)
  from.on('error', () => to.destroy())
  to.on('error', () => from.destroy())
  from.on('close', () => to.destroy())
  to.on('close', () => from.destroy())
}).listen(path)
