"""The canary: one token through the whole path before anybody is served."""

import math
import struct
from typing import Any

from .frames import Sampling
from .loop import LOGPROB_MIN
from .rows import Row
from .service import Service
from .text import Writer


def one_token(service: Service) -> bool:
    if not getattr(service.engine, "writes", True):
        return _one_vector(service)
    frames: list[dict[str, Any]] = []
    loop = service.loop(frames.append)
    prompt = {"kind": "ids", "ids": service.canary}
    row = Row(
        attempt="canary",
        order=0,
        prompt=service.canary,
        ids=[],
        tokens_max=1,
        sampling=Sampling(),
        writer=Writer(service.language.text_plan(prompt, service.canary, [])),
        logprobs=0,
    )
    loop.orders.put(("submit", row))
    loop.work()
    drawn = [row for frame in frames if frame["kind"] == "step" for row in frame["rows"]]
    # Broken weights give tokens too, but no probabilities.
    return any(row["logprob"]["logprob"] > LOGPROB_MIN for row in drawn)


def _one_vector(service: Service) -> bool:
    """Of an engine that only embeds: a vector of length one."""
    work = service.engine.embed(service.canary, len(service.canary))
    while True:
        try:
            next(work)
        except StopIteration as done:
            values = struct.unpack(f"<{len(done.value) // 4}f", done.value)
            return abs(math.fsum(value * value for value in values) - 1) < 1e-3
