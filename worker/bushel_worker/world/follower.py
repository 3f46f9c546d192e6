"""A rank of a world that does not lead: it does what its leader does, in the same order, with its own part of
the layers. Between two operations it waits for its socket, never in a collective: MLX's ring burns a core while
it waits."""

import threading
from typing import Any

import mlx.core as mx

from ..pipeline.link import Activity, Inbox, PeerLost
from ..stage_port import Span
from ..stage_rows import StageRows
from .errors import OutOfStep
from .lockstep import Lockstep

TO_CACHES = ("merge", "drop", "forget", "park", "trim", "rename", "keep", "begin", "evict")


class Follower:
    def __init__(self, rows: StageRows, lockstep: Lockstep, activity: Activity) -> None:
        self._rows, self._lockstep, self.activity = rows, lockstep, activity
        self.working = threading.Event()  # set while operations come

    def run(self, inbox: Inbox) -> None:
        while True:
            message = inbox.get()
            if isinstance(message, PeerLost):
                raise message
            self.activity.busy = True
            self.working.set()
            self.obey(message.header)
            self.activity.step += 1
            self.activity.busy = False

    def obey(self, told: dict[str, Any]) -> None:
        op, number = told.pop("op"), told.pop("number")
        if number != self._lockstep.number:
            raise OutOfStep(f"the leader is at step {number}, this rank at step {self._lockstep.number}")
        if op == "prefill":
            self._prefill(**told)
        elif op == "step":
            entering = self._lockstep.enter(None, told["shape"], told["kind"])
            mx.async_eval(self._rows.step(told["batch"], told["leave"], told["join"], entering))
            self._lockstep.verify(unfinished=1)
        elif op in TO_CACHES:
            getattr(self._rows, op)(**told)
        else:
            raise OutOfStep(f"the leader asks for {op}, which this rank does not know")

    def _prefill(self, spans: list[Any], slices: int, shape: list[int], kind: str, ids: Any) -> None:
        entering = self._lockstep.known(mx.array(ids)) if ids else self._lockstep.enter(None, shape, kind)
        for _ in self._rows.prefill([Span(*span) for span in spans], entering, slices):
            self.activity.step += 1
        self._lockstep.verify()
