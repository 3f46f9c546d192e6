// MLX's own launcher takes the files that we write: a ring that really runs, and JACCL's environment.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { captureFolder } from '../../../test/support/captures.ts'
import { cli } from '../../../test/support/cli.ts'
import { runtimePython, withoutMlx } from '../../../test/support/python.ts'
import { jacclEnvironment } from './rank-environment.ts'

const mlxLaunch = join(dirname(runtimePython), 'mlx.launch')
const support = join(import.meta.dirname, '..', '..', '..', 'test', 'support')

/** A network of its own, where the addresses of the captured Macs can be given to the loopback device. */
function inOwnNetwork(
  addresses: readonly string[],
  command: readonly string[],
  scratch: string = tmpdir(),
) {
  const script = [
    'ip link set lo up',
    ...addresses.map((one) => `ip addr add ${one}/32 dev lo`),
    'exec "$@"',
  ].join(' && ')
  return spawnSync(
    'unshare',
    ['--user', '--map-root-user', '--net', 'sh', '-c', script, 'sh', ...command],
    {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 60_000,
      env: { ...process.env, TMPDIR: scratch },
    },
  )
}

const withoutNetworks: string | false =
  inOwnNetwork(['192.168.0.1'], ['true']).status === 0
    ? false
    : 'needs Linux with network namespaces'

/** The hostfile of the matched pair, for two ranks that both start here. */
async function withHostfile(
  options: readonly string[],
  use: (path: string) => void,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bushel-hostfile-'))
  try {
    const path = join(folder, 'hosts.json')
    const local = ['--ssh', 'macbook=127.0.0.1', '--ssh', 'studio=127.0.0.1']
    const run = await cli([
      'config',
      '--from',
      captureFolder('matched-pair'),
      ...local,
      ...options,
      '--output',
      path,
    ])
    assert.equal(run.code, 0, run.stderr)
    use(path)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test(
  'mlx.launch runs two ranks from the ring hostfile of the matched pair',
  { skip: withoutMlx || withoutNetworks },
  async () => {
    await withHostfile(['--backend', 'ring'], (hostfile) => {
      const done = inOwnNetwork(
        ['192.168.0.1', '192.168.0.2'],
        [mlxLaunch, '--hostfile', hostfile, '--python', runtimePython, join(support, 'all_sum.py')],
        // mlx.launch leaves temporary files behind.
        dirname(hostfile),
      )
      assert.equal(done.status, 0, done.stderr)
      assert.deepEqual(done.stdout.trim().split('\n').toSorted(), [
        'rank 0 of 2 got 3',
        'rank 1 of 2 got 3',
      ])
    })
  },
)

test(
  'mlx.launch takes the JACCL hostfile and gives the ranks the environment that we would give',
  { skip: withoutMlx },
  async () => {
    for (const [backend, shape] of [
      ['jaccl', 'mesh'],
      ['jaccl-ring', 'ring'],
    ] as const)
      await withHostfile(['--backend', backend], (hostfile) => {
        const print =
          'echo "$MLX_RANK|$MLX_JACCL_COORDINATOR|${MLX_JACCL_RING:-unset}|$(cat $MLX_IBV_DEVICES)"'
        const done = spawnSync(
          mlxLaunch,
          ['--hostfile', hostfile, '-p', '5000', '--', 'sh', '-c', print],
          {
            encoding: 'utf8',
            stdio: ['ignore', 'pipe', 'pipe'],
            timeout: 60_000,
            env: { ...process.env, TMPDIR: dirname(hostfile) },
          },
        )
        assert.equal(done.status, 0, done.stderr)
        const lines = done.stdout.trim().split('\n').toSorted()
        assert.equal(lines.length, 2)
        for (const [rank, line] of lines.entries()) {
          const [number, coordinator, ring, matrix = ''] = line.split('|')
          const ours = jacclEnvironment({
            rank,
            shape,
            matrix: [
              [null, 'rdma_en3'],
              ['rdma_en3', null],
            ],
            rendezvous: { kind: 'coordinator', address: '192.168.10.127', port: 5000 },
          })
          assert.deepEqual(ours.set, {
            MLX_RANK: number,
            MLX_JACCL_COORDINATOR: coordinator,
            ...(ring === 'unset' ? {} : { MLX_JACCL_RING: ring }),
          })
          assert.deepEqual(JSON.parse(ours.files[0]?.content ?? ''), JSON.parse(matrix))
        }
      })
  },
)
