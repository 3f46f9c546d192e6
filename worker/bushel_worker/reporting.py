"""What a rank says of itself: that it is ready, and why it goes."""

import os
from collections.abc import Callable
from typing import Any, NoReturn

from .frames import FrameWriter
from .service import Service


def ready_frame(service: Service, load_ms: float, canary_ms: float) -> dict[str, Any]:
    memory = service.memory
    return {
        "kind": "ready",
        "pid": os.getpid(),
        "device": service.device,
        "versions": service.versions,
        "contextTokens": min(service.context_tokens, memory.tokens_max()),
        "vocabulary": service.language.vocabulary,
        "rowsMax": service.limits.rows_max,
        "weightsBytes": memory.weights_bytes,
        "kvBytesPerToken": memory.per_token,
        "batching": "merged" if service.merging else "separate",
        "loadMs": round(load_ms, 1),
        "canaryMs": round(canary_ms, 1),
        "abilities": service.language.abilities,
    }


def die(out: FrameWriter, code: str, message: str) -> NoReturn:
    out.send({"kind": "failed", "attempt": None, "code": code, "message": message})
    os._exit(1)


def guarded(work: Callable[[], None], out: FrameWriter) -> None:
    try:
        work()
    except BaseException as error:
        die(out, "intake-failed", f"the intake failed: {type(error).__name__}")
