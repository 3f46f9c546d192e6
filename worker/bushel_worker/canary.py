"""The canary: one token through the whole path before anybody is served."""

from typing import Any

from .frames import Sampling
from .loop import LOGPROB_MIN
from .rows import Row
from .service import Service
from .text import Writer


def one_token(service: Service) -> bool:
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
