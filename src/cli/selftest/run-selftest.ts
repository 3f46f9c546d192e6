// The self-test: looks, tries, and puts everything into one redacted file that its owner can read and send.
import { createHmac, randomBytes } from 'node:crypto'
import { hostname, userInfo } from 'node:os'
import { createRealAccess } from '../../adapters/probers/access/real-access.ts'
import { record, replay } from '../../adapters/probers/access/recording.ts'
import { createLinuxProber } from '../../adapters/probers/linux/linux-prober.ts'
import { createMacProber } from '../../adapters/probers/mac/mac-prober.ts'
import { recordingOfBundle } from '../../adapters/selftest/bundle-recording.ts'
import { findLeaks, redactMachine } from '../../adapters/selftest/redact-recording.ts'
import { renderDiagnosis } from '../../core/doctor/render.ts'
import { diagnose } from '../../core/doctor/run-doctor.ts'
import { probeLimits } from '../../core/machine-facts/limits.ts'
import type { MachineFacts } from '../../core/machine-facts/machine.ts'
import { type Redactor, createRedactor } from '../../core/selftest/redact.ts'
import type { MachineAccess } from '../../ports/machine-access.ts'
import type { BundleMachine, SelftestBundle } from '../../wire/selftest-bundle.ts'
import { type CliContext, UserError } from '../command.ts'
import { findDaemon } from '../daemon-client.ts'
import { homeDir } from '../settings.ts'
import { clusterView } from '../../wire/cluster-view.ts'
import { createLocalProber, localPlatform } from '../machines/local-prober.ts'
import { clusterSteps } from './cluster-steps.ts'
import { localSteps } from './local-steps.ts'
import type { SelftestBench } from './step.ts'

export interface SelftestOptions {
  readonly bushel: string
  /** The same word on several machines keeps their files matching; random otherwise. */
  readonly word: string | undefined
  readonly useMacmon: boolean
  readonly nowMs: () => number
}

export async function runSelftest(
  context: CliContext,
  options: SelftestOptions,
): Promise<SelftestBundle> {
  const real = createRealAccess(context.env)
  const recorder = record(real)
  context.out.note('Looking at this machine …')
  const facts = await createLocalProber(context, recorder.access).probeMachine()
  const key = options.word ?? randomBytes(32).toString('hex')
  const redactor = createRedactor({
    digest: (text) => createHmac('sha256', key).update(text).digest('hex'),
    names: [...(await namesOf(real, facts)), ...(await clusterNames(context))],
  })
  const label = `machine-${redactor.name(hostname()).replace('name-', '')}`
  const bench: SelftestBench = {
    context,
    access: recorder.access,
    label,
    facts,
    nowMs: options.nowMs,
    useMacmon: options.useMacmon,
  }
  const steps = await runSteps(bench, redactor)
  const day = new Date(options.nowMs()).toISOString().slice(0, 10)
  const machine = redactMachine(
    {
      label,
      platform: localPlatform(),
      observedAtMs: Date.parse(day),
      self: { pid: process.pid, uid: process.getuid?.() ?? -1 },
      recording: recorder.recording(),
    },
    redactor,
  )
  return checked(
    {
      format: 'bushel-selftest',
      version: 1,
      bushel: options.bushel,
      day,
      machines: [machine],
      steps,
      diagnosis: await diagnoseRedacted(machine),
    },
    redactor,
  )
}

async function runSteps(
  bench: SelftestBench,
  redactor: Redactor,
): Promise<SelftestBundle['steps']> {
  const steps: SelftestBundle['steps'] = []
  for (const { id, title, run } of [...localSteps, ...clusterSteps]) {
    const outcome = await run(bench)
    const words = outcome.kind === 'ran' ? outcome.summary : outcome.reason
    bench.context.out.note(
      `${outcome.kind === 'ran' ? '✓' : outcome.kind === 'failed' ? '✗' : '·'} ${title}: ${words}`,
    )
    steps.push({
      id,
      title,
      outcome:
        outcome.kind === 'ran'
          ? { ...outcome, summary: redactor.text(outcome.summary) }
          : { ...outcome, reason: redactor.text(outcome.reason) },
    })
  }
  return steps
}

/** Names that people gave: of the machine, of its users, of network services. */
async function namesOf(access: MachineAccess, facts: MachineFacts): Promise<readonly string[]> {
  const asked = await Promise.all(
    ['ComputerName', 'LocalHostName', 'HostName'].map((name) =>
      access.runCommand(['scutil', '--get', name], { timeoutMs: probeLimits.commandTimeoutMs }),
    ),
  )
  const given = asked.flatMap((one) => (one.kind === 'exited' ? [one.stdout.trim()] : []))
  const services = facts.services.known
    ? facts.services.value.map((one) => one.name).filter((name) => !ordinaryService.test(name))
    : []
  const host = hostname()
  return [host, host.split('.')[0] ?? host, userInfo().username, ...given, ...services].filter(
    (name) => name !== '',
  )
}

/** What the machines of the cluster are called, and their identities. */
async function clusterNames(context: CliContext): Promise<readonly string[]> {
  const daemon = findDaemon(homeDir(context.env))
  if (daemon === null) return []
  try {
    const { machines } = clusterView.parse(await daemon.get('/cluster/view'))
    return machines.flatMap(({ name, id }) => [name, id])
  } catch {
    // A daemon that does not answer is what the steps will say.
    return []
  }
}

const ordinaryService =
  /^(Wi-Fi|Ethernet.*|USB [\w/ ]*LAN|(EXO )?Thunderbolt( Bridge| \d+)?|iPhone USB|Tailscale( \d+)?)$/

/** The doctor's words come from the redacted captures, so that they can hold no more than those do. */
async function diagnoseRedacted(machine: BundleMachine): Promise<string[]> {
  const components = {
    name: machine.label,
    access: replay(recordingOfBundle(machine)),
    nowMs: () => machine.observedAtMs,
    self: machine.self,
    runtimePython: 'python',
  }
  const prober =
    machine.platform === 'macos'
      ? createMacProber(components)
      : createLinuxProber({ ...components, linkSettings: {} })
  const diagnosis = diagnose({ machines: [await prober.probeMachine()], paths: [], links: [] })
  return renderDiagnosis(diagnosis, { verbose: true }).trimEnd().split('\n')
}

function checked(bundle: SelftestBundle, redactor: Redactor): SelftestBundle {
  const leaks = findLeaks(JSON.stringify(bundle), redactor.removed())
  if (leaks.length > 0)
    throw new UserError(
      `Nothing was written: ${leaks.length} names or addresses would have been left in the file. Please report this with the output of "bushel version"`,
    )
  return bundle
}
