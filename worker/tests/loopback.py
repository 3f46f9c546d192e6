"""A pipeline in one process and one thread: the head's engine and the later stages' services are the real ones,
and every message goes through its bytes, but no socket is in between. Quick enough for every architecture."""

import json
import queue
from typing import Any

from bushel_worker.pipeline.head import PipelineEngine
from bushel_worker.pipeline.link import Activity, Message
from bushel_worker.pipeline.mlx_work import MlxWork
from bushel_worker.pipeline.service import StageService
from bushel_worker.pipeline.wire import Tensor
from bushel_worker.stage import Stage
from bushel_worker.stage_rows import StageRows

from .tiny import ON_CPU


class Wire:
    """Sends at once: whoever is behind it works before `send` returns."""

    heard = 0

    def __init__(self, deliver: Any) -> None:
        self._deliver = deliver
        self.bytes = 0

    def send(self, header: dict[str, Any], tensor: Tensor | None = None) -> None:
        carried = None
        if tensor is not None:
            data = bytes(memoryview(tensor.data).cast("B"))
            self.bytes += len(data)
            carried = Tensor(tuple(tensor.shape), tensor.dtype, data)
        self._deliver(Message(json.loads(json.dumps(header)), carried))


class LoopbackRing:
    def __init__(self, outward: Wire) -> None:
        self.inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.outward = outward
        self.inward = Wire(lambda message: None)


class Loopback:
    """`engine` is the head's; `services` are the later stages."""

    def __init__(self, stages: list[Stage]) -> None:
        facts = {"kvBytesPerToken": 0, "keptBytesMax": 1 << 20}
        self.frames: list[dict[str, Any]] = []
        self.services = [
            StageService(MlxWork(StageRows(stage), ON_CPU), 1 + index, stage.last, facts, Activity(), self.frames.append)
            for index, stage in enumerate(stages[1:])
        ]
        back = Wire(lambda message: self.ring.inbox.put(message))
        wire = back
        for service in reversed(self.services):
            ring = LoopbackRing(wire)
            wire = Wire(lambda message, service=service, ring=ring: service.perform(ring, message))
        self.ring = LoopbackRing(wire)
        self.held = [StageRows(stages[0]), *(service._work.stage for service in self.services)]
        work = MlxWork(self.held[0], ON_CPU)
        self.engine = PipelineEngine(work, self.ring, len(stages), Activity(), 1 << 20)  # type: ignore[arg-type]
