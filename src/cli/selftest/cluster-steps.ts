// The steps that need machines joined to a cluster. Until a daemon offers them they are skipped, and say so.
import { type SelftestStep, skipped } from './step.ts'

const needsCluster =
  'needs a running cluster: start "bushel up" on your machines, join them, and run the self-test again'

const later = (id: string, title: string): SelftestStep => ({
  id,
  title,
  run: async () => skipped(needsCluster),
})

export const clusterSteps: readonly SelftestStep[] = [
  later('link-probes', 'latency and bandwidth of every link'),
  later('ring-start', 'a ring over all machines adds up'),
  later('jaccl-start', 'a JACCL world over all machines adds up'),
  later('kill-test', 'a killed rank ends the others within two seconds'),
  later('resume-match', 'a stream that loses a machine goes on with the same tokens'),
]
