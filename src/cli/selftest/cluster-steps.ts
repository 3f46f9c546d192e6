// The steps that need machines joined to a cluster. Whatever cannot be done says why.
import { z } from 'zod'
import { clusterView } from '../../wire/cluster-view.ts'
import { linkView } from '../../wire/link-measurement.ts'
import type { MeasuredRow, StepOutcome } from '../../wire/selftest-bundle.ts'
import { type DaemonClient, findDaemon } from '../daemon-client.ts'
import { homeDir } from '../settings.ts'
import { type LaunchedOutcome, runLaunched } from './launched.ts'
import { dyingMark, dyingProgram, readSum, sumProgram } from './programs.ts'
import { resumeStep } from './resume-step.ts'
import { type SelftestBench, type SelftestStep, skipped } from './step.ts'

const needsCluster =
  'needs a running cluster: start "bushel up" on your machines, join them, and run the self-test again'
const transferMs = 400
const killMsMax = 2000

interface Cluster {
  readonly daemon: DaemonClient
  readonly machines: readonly { readonly name: string; readonly platform: string | null }[]
}

/** A step over the machines that are up now, two or more of them. */
function overCluster(
  about: Pick<SelftestStep, 'id' | 'title'>,
  run: (bench: SelftestBench, cluster: Cluster) => Promise<StepOutcome>,
): SelftestStep {
  return {
    ...about,
    run: async (bench) => {
      const daemon = findDaemon(homeDir(bench.context.env))
      if (daemon === null) return skipped(needsCluster)
      const began = bench.nowMs()
      try {
        const view = clusterView.parse(await daemon.get('/cluster/view'))
        const machines = view.machines.filter((one) => one.state === 'alive')
        if (machines.length < 2)
          return skipped('this machine is alone; join another with "bushel invite"')
        return await run(bench, { daemon, machines })
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        return { kind: 'failed', reason, tookMs: bench.nowMs() - began }
      }
    },
  }
}

const linkStep = overCluster(
  { id: 'link-probes', title: 'latency and bandwidth of every link' },
  async (bench, { daemon }) => {
    const began = bench.nowMs()
    const body = { milliseconds: transferMs }
    const links = z.array(linkView).parse(await daemon.post('/cluster/links/measure', body))
    const rows = links.flatMap(({ measured }, index): MeasuredRow[] => {
      if (measured?.gbps == null) return []
      const nominal = measured.nominalGbps === null ? 'not known' : `${measured.nominalGbps} Gb/s`
      const detail = `link ${index}, ${measured.class ?? 'unknown'}, nominal ${nominal}${measured.slow ? `, slow: ${measured.likelyCause ?? ''}` : ''}`
      const row = { machine: bench.label, detail }
      const trip = measured.roundTripMicros?.median
      return [
        { ...row, what: 'link-forward', value: measured.gbps.forward, unit: 'Gb/s' },
        { ...row, what: 'link-backward', value: measured.gbps.backward, unit: 'Gb/s' },
        ...(trip === undefined
          ? []
          : [{ ...row, what: 'link-round-trip', value: trip, unit: 'µs' }]),
      ]
    })
    const slow = links.filter((link) => link.measured?.slow === true).length
    const failed = links.filter((link) => link.measured?.gbps == null).length
    return {
      kind: 'ran',
      summary: `${links.length} links, ${slow} slow, ${failed} could not be measured`,
      tookMs: bench.nowMs() - began,
      measured: rows,
    }
  },
)

const ringStep = overCluster(
  { id: 'ring-start', title: 'a ring over all machines adds up' },
  (bench, cluster) => addUp(bench, cluster, 'ring'),
)

const jacclStep = overCluster(
  { id: 'jaccl-start', title: 'a JACCL world over all machines adds up' },
  (bench, cluster) => {
    const others = cluster.machines.filter((one) => one.platform?.startsWith('darwin') !== true)
    return others.length > 0
      ? Promise.resolve(skipped(`${others.length} of the machines are no Macs`))
      : addUp(bench, cluster, 'jaccl')
  },
)

async function addUp(
  bench: SelftestBench,
  { daemon }: Cluster,
  backend: 'ring' | 'jaccl',
): Promise<StepOutcome> {
  const began = bench.nowMs()
  const outcome = await runLaunched(daemon, { script: sumProgram(backend), backend })
  const tookMs = bench.nowMs() - began
  if (outcome.refusal !== null) return refusedBecause(bench, outcome)
  const result = readSum(outcome.output)
  if (outcome.code !== 0 || result === null)
    return { kind: 'failed', reason: lastWords(outcome), tookMs }
  if (!result.right) return { kind: 'failed', reason: 'the sum was wrong', tookMs }
  const detail = `${result.ranks} ranks, ${outcome.backend}`
  const row = { machine: bench.label, detail }
  return {
    kind: 'ran',
    summary: `${detail}, formed in ${result.formed.toFixed(2)} s, a small sum takes ${Math.round(result.small * 1e6)} µs`,
    tookMs,
    measured: [
      { ...row, what: `${backend}-form-cluster`, value: result.formed, unit: 's' },
      { ...row, what: `${backend}-all-sum-4B`, value: result.small * 1e6, unit: 'µs' },
      { ...row, what: `${backend}-all-sum-16MiB`, value: result.large * 1e3, unit: 'ms' },
    ],
  }
}

const killStep = overCluster(
  { id: 'kill-test', title: 'a killed rank ends the others within two seconds' },
  async (bench, { daemon }) => {
    const began = bench.nowMs()
    const program = { script: dyingProgram, backend: 'ring', mark: dyingMark } as const
    const outcome = await runLaunched(daemon, program)
    const tookMs = bench.nowMs() - began
    if (outcome.refusal !== null) return refusedBecause(bench, outcome)
    const { afterMarkMs, code } = outcome
    if (afterMarkMs === null || code === 0)
      return { kind: 'failed', reason: `no rank was killed: ${lastWords(outcome)}`, tookMs }
    if (afterMarkMs > killMsMax)
      return { kind: 'failed', reason: `it took ${Math.round(afterMarkMs)} ms`, tookMs }
    const summary = `all ranks were gone after ${Math.round(afterMarkMs)} ms`
    const row = { what: 'kill-to-end', value: afterMarkMs, unit: 'ms', machine: bench.label }
    return { kind: 'ran', summary, tookMs, measured: [{ ...row, detail: 'MLX ring' }] }
  },
)

/** The whole reason is for this terminal: it may hold paths of other machines, which the file must not. */
function refusedBecause(bench: SelftestBench, { refusal }: LaunchedOutcome): StepOutcome {
  bench.context.out.note(`  ${refusal ?? ''}`)
  if (refusal?.includes('does not allow launches') === true)
    return skipped(
      'not every machine allows launches: set "allow_launch = true" in its config.toml',
    )
  return skipped((refusal ?? '').replaceAll(/\/[^\s;:,"]+/g, '…'))
}

function lastWords({ cause, output }: LaunchedOutcome): string {
  const tail = output.trimEnd().split('\n').slice(-3).join(' | ')
  return `${cause}: ${tail}`.replaceAll(/\/[^\s;:,"]+/g, '…').slice(-600)
}

export const clusterSteps: readonly SelftestStep[] = [
  linkStep,
  ringStep,
  jacclStep,
  killStep,
  resumeStep,
]
