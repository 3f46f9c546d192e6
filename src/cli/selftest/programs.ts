// The programs that the self-test launches, in Python.

/** Each rank prints one JSON line: seconds to form the world, a small and a large sum, and whether they were right. */
export const sumProgram = (backend: 'ring' | 'jaccl'): string => `
import json, statistics, time
began = time.perf_counter()
import mlx.core as mx
mx.set_default_device(mx.cpu)
group = mx.distributed.init(strict=True, backend="${backend}")
formed = time.perf_counter() - began
def timed(x):
    start = time.perf_counter()
    mx.eval(mx.distributed.all_sum(x, group=group))
    return time.perf_counter() - start
total = mx.distributed.all_sum(mx.array([group.rank() + 1.0]), group=group)
right = total.item() == group.size() * (group.size() + 1) / 2
small = [timed(mx.ones((1,))) for _ in range(200)]
large = [timed(mx.ones((4 * 1024 * 1024,))) for _ in range(5)]
print(json.dumps({"right": right, "ranks": group.size(), "formed": formed, "small": statistics.median(small), "large": statistics.median(large)}))
`

export const dyingMark = 'the last rank dies now'

/** All ranks add up without end, until the last one kills itself as the system would. */
export const dyingProgram = `
import os, signal, time
import mlx.core as mx
mx.set_default_device(mx.cpu)
group = mx.distributed.init(strict=True, backend="ring")
mx.eval(mx.distributed.all_sum(mx.ones((1,)), group=group))
if group.rank() == group.size() - 1:
    print("${dyingMark}", flush=True)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)
while True:
    mx.eval(mx.distributed.all_sum(mx.ones((1,)), group=group))
`

/** What a rank of the sum program has printed. */
export interface SumResult {
  readonly right: boolean
  readonly ranks: number
  readonly formed: number
  readonly small: number
  readonly large: number
}

/** Of whichever rank was first; null when none has. */
export function readSum(output: string): SumResult | null {
  const line = output.split('\n').find((one) => one.startsWith('{"right"'))
  return line === undefined ? null : (JSON.parse(line) as SumResult)
}
