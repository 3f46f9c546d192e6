// A planner as bad as one may be: late, silent, unsure, or naming machines that have gone meanwhile. Whatever it
// says, groups must come up.
import type { Advice, AdviceQuestion, AdvisedStage } from '../core/cluster/advice.ts'
import { wantedDeployments } from '../core/cluster/desired.ts'
import type { Advisor } from '../runtime/machine.ts'
import type { SimHost } from './host.ts'
import type { Life } from './life.ts'
import type { Random } from './random.ts'
import type { World } from './world.ts'

const answerMsMax = 200
const lateMsMax = 6000

export function advisorOf(world: World, host: SimHost, life: Life): Advisor {
  const random = world.random.stream(`advisor ${host.spec.index} ${host.lives}`)
  const clock = host.clockOf(life)
  return {
    ask(question) {
      if (random.chance(0.05)) return
      const delayMs = random.whole(0, random.chance(0.1) ? lateMsMax : answerMsMax)
      clock.after(delayMs, () => {
        const advice = adviceAbout(world, question, { random, life })
        const { deployment, basis } = question
        life.machine.post({ kind: 'advice-learned', deployment, basis, advice })
      })
    },
  }
}

function adviceAbout(
  world: World,
  { deployment: id, avoid, basis }: AdviceQuestion,
  { random, life }: { random: Random; life: Life },
): Advice {
  const { registers } = life.machine.state
  const deployment = wantedDeployments(registers).find((one) => one.id === id)
  const machines = world.hosts
    .map((host) => host.spec)
    .filter((spec) => spec.role !== 'client' && !avoid.includes(spec.id))
    .map((spec) => spec.id)
  const first = random.pick(machines)
  if (deployment === undefined || first === undefined || random.chance(0.3))
    return { kind: 'unknown', why: 'the simulated planner cannot tell', basis }
  const { layers } = deployment.model
  const second = random.chance(0.3)
    ? random.pick(machines.filter((machine) => machine !== first))
    : undefined
  const half = Math.floor(layers / 2)
  const alone = (machine: typeof first, count: number): AdvisedStage => ({
    layers: count,
    machines: [machine],
    sharing: 'alone',
  })
  const range = { value: 10, low: 8, high: 12 }
  return {
    kind: 'planned',
    strategy: second === undefined ? 'single' : 'pipeline',
    stages:
      second === undefined
        ? [alone(first, layers)]
        : [alone(first, half), alone(second, layers - half)],
    backend: 'ring',
    why: 'the simulated planner likes it',
    kbFindings: [],
    predicted: { tokensPerSecond: range, firstTokenSeconds: range, restsOn: 'nothing' },
    basis,
  }
}
