"""All-reduces of a world inside a compute loop: what a step pays for them is the difference to the loop alone."""

import faulthandler
import statistics
import time
from typing import Any

import mlx.core as mx

from ..world.backend import INIT_SECONDS_MAX

SMALL = 4096
MEBIBYTE = 262_144
WIDTH = 512
SKIPPED = 3
# Under noise the difference of two loops can vanish; a collective never takes no time.
LEAST_SECONDS = 1e-7


def measure(backend: str, rounds: int) -> dict[str, Any]:
    # Ranks that never meet wait in init for ever, with Python's lock held: a timer outside Python ends them.
    faulthandler.dump_traceback_later(INIT_SECONDS_MAX, exit=True)
    group = mx.distributed.init(strict=True, backend=backend)
    faulthandler.cancel_dump_traceback_later()
    weights = mx.random.normal((WIDTH, WIDTH))
    mx.eval(weights)

    def loop(count: int, meets: bool) -> list[float]:
        seconds = []
        for _ in range(SKIPPED + rounds):
            row = mx.ones((1, WIDTH))
            array = mx.ones((count,))
            mx.eval(row, array)
            began = time.perf_counter()
            array = array + (row @ weights).sum()
            mx.eval(mx.distributed.all_sum(array, group=group) if meets else array)
            seconds.append(time.perf_counter() - began)
        return seconds[SKIPPED:]

    def cost(count: int) -> list[float]:
        alone = statistics.median(loop(count, False))
        return [max(LEAST_SECONDS, one - alone) for one in loop(count, True)]

    return {"backend": backend, "smallSeconds": cost(SMALL), "mebibyteSeconds": cost(MEBIBYTE)}
