"""The canary: one token through the whole path before anybody is served."""

from typing import Any

from .frames import Sampling
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
    )
    loop.orders.put(("submit", row))
    loop.work()
    return any(frame["kind"] == "step" and frame["rows"] for frame in frames)
