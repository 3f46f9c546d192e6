// A stream that loses a rank in the middle must end with the words of an unbroken one. Only a rank of this
// machine is ever killed, and only when nobody else is being answered.
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { type DeploymentView, clusterView } from '../../wire/cluster-view.ts'
import { streamChat } from '../chat-client.ts'
import { type DaemonClient, findDaemon } from '../daemon-client.ts'
import { homeDir } from '../settings.ts'
import { type SelftestStep, skipped } from './step.ts'

const tokens = 48
const piecesBeforeLoss = 6
const answerMsMax = 180_000
const prompt = 'Count from one to thirty in words, separated by commas.'

interface Victim {
  readonly model: string
  readonly pid: number
  readonly strategy: string
}

export const resumeStep: SelftestStep = {
  id: 'resume-match',
  title: 'a stream that loses a rank goes on with the same words',
  run: async (bench) => {
    const daemon = findDaemon(homeDir(bench.context.env))
    if (daemon === null)
      return skipped('needs a running daemon with a loaded model: "bushel up", "bushel load MODEL"')
    const began = bench.nowMs()
    try {
      const view = clusterView.parse(await daemon.get('/cluster/view'))
      const self = view.machines.find((machine) => machine.id === view.self)?.name ?? ''
      const victim = victimOf(view.deployments, self)
      if (victim === null)
        return skipped('no model is served by a rank of this machine; load one with "bushel load"')
      if (await isBusy(daemon))
        return skipped('somebody is being answered, and a rank would be killed; try again later')
      const { match, pauseMs } = await loseAndCompare(daemon, victim)
      const tookMs = bench.nowMs() - began
      if (!match) return { kind: 'failed', reason: 'the words after the loss were others', tookMs }
      const row = { what: 'resume-pause', value: pauseMs, unit: 'ms', machine: bench.label }
      return {
        kind: 'ran',
        summary: `the same words, after a pause of ${(pauseMs / 1000).toFixed(1)} s`,
        tookMs,
        measured: [{ ...row, detail: `${victim.strategy}, ${tokens} tokens` }],
      }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      return { kind: 'failed', reason, tookMs: bench.nowMs() - began }
    }
  },
}

function victimOf(deployments: readonly DeploymentView[], self: string): Victim | null {
  for (const { model, groups } of deployments)
    for (const { status, strategy, stages } of groups)
      for (const rank of stages.flatMap((stage) => stage.ranks))
        if (status === 'ready' && rank.machine === self && rank.pid !== null)
          return { model, pid: rank.pid, strategy }
  return null
}

async function isBusy(daemon: DaemonClient): Promise<boolean> {
  const running = z.array(z.looseObject({ endedMs: z.number().nullable() }))
  return running.parse(await daemon.get('/cluster/generations')).some((one) => one.endedMs === null)
}

async function loseAndCompare(
  daemon: DaemonClient,
  { model, pid }: Victim,
): Promise<{ match: boolean; pauseMs: number }> {
  const ask = (onText: () => void): Promise<{ text: string }> =>
    streamChat(daemon, {
      model,
      messages: [{ role: 'user', content: prompt }],
      temperature: 0,
      maxTokens: tokens,
      signal: AbortSignal.timeout(answerMsMax),
      onText,
    })
  const unbroken = await ask(() => undefined)
  await sleep(500)
  let pieces = 0
  let lastMs = performance.now()
  let pauseMs = 0
  const broken = await ask(() => {
    pieces += 1
    const nowMs = performance.now()
    if (pieces > piecesBeforeLoss) pauseMs = Math.max(pauseMs, nowMs - lastMs)
    lastMs = nowMs
    if (pieces === piecesBeforeLoss) process.kill(pid, 'SIGKILL')
  })
  return { match: pieces > piecesBeforeLoss && broken.text === unbroken.text, pauseMs }
}
