"""A stage after the first: takes operations from the stage before it, one after the other, does its layers'
part, and passes them on. The last one draws and tells the head. While it waits for operations it sleeps."""

import queue
import time
from collections.abc import Callable
from typing import Any

from ..stage_port import Span
from .joining import tail_row
from .link import Activity, Message, PeerLost
from .ring import Ring
from .work import TailRow, Work

PULSE_SECONDS = 0.2
STATS_SECONDS = 1.0
IDLE_SECONDS = 0.5  # without an operation before the agent is told that nothing is to do

Send = Callable[[dict[str, Any]], None]


class OutOfStep(Exception):
    """This stage's rows are not those that the head believes it has."""


class StageService:
    def __init__(self, work: Work, last: bool, facts: dict[str, Any], activity: Activity, send: Send) -> None:
        self._work, self._last, self._facts, self._activity, self._send = work, last, facts, activity, send
        self._rows: dict[int, TailRow] = {}
        self._lengths: dict[int, int] = {}
        self._told_at = self._stats_at = 0.0
        self._drawn = 0
        self._perform = {
            "gather": self._gather,
            "prefill": self._prefill,
            "step": self._step,
            "merge": self._merge,
            "drop": self._drop,
            "forget": self._forget,
        }

    def run(self, ring: Ring) -> None:
        """Until a neighbour is lost, which is raised."""
        while True:
            came = self._next(ring)
            if isinstance(came, PeerLost):
                raise came
            self.perform(ring, came)

    def perform(self, ring: Ring, came: Message) -> None:
        self._activity.busy = True
        self._perform[came.header["op"]](ring, came)
        self._activity.busy = False
        self._step_made()

    def _next(self, ring: Ring) -> Message | PeerLost:
        if self._told_at:
            try:
                return ring.inbox.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                self._stats()
                self._send({"kind": "pulse", "step": self._activity.step, "busy": False})
                self._told_at = 0.0
        return ring.inbox.get()

    # --- operations

    def _gather(self, ring: Ring, came: Message) -> None:
        header = came.header
        ring.outward.send({**header, "facts": [*header["facts"], self._facts]})

    def _prefill(self, ring: Ring, came: Message) -> None:
        header = came.header
        spans = [Span(*span) for span in header["spans"]]
        assert came.tensor is not None
        for span in spans:
            if self._lengths.get(span.row, 0) != span.start:
                raise OutOfStep(f"row {span.row} holds {self._lengths.get(span.row, 0)} tokens, not {span.start}")
            self._lengths[span.row] = span.end
        work = self._work.prefill(spans, self._work.unpacked(came.tensor), header["slices"])
        while True:
            try:
                next(work)
                self._step_made()
            except StopIteration as done:
                out = done.value
                break
        if self._last:
            ring.outward.send({"op": "read", "number": header["number"]})
        else:
            ring.outward.send(header, self._work.packed(out))

    def _step(self, ring: Ring, came: Message) -> None:
        header = came.header
        assert came.tensor is not None
        joining = [told["row"] for told in header["join"]]
        self._left(header["leave"])
        for row, length in zip(header["rows"], header["at"], strict=True):
            held = self._lengths.get(row, 0)
            if held != length - 1:
                raise OutOfStep(f"row {row} holds {held} tokens, not {length - 1}")
            self._lengths[row] = length
        out = self._work.step(header["batch"], header["leave"], joining, self._work.unpacked(came.tensor))
        if self._work.stage.rows_of(header["batch"]) != header["rows"]:
            raise OutOfStep(f"micro-batch {header['batch']} holds other rows than the head's")
        if not self._last:
            ring.outward.send(header, self._work.packed(out))
            return
        for told in header["join"]:
            self._rows[told["row"]] = tail_row(told)
        for row, mask in header["masks"].items():
            self._rows[int(row)].constraint.take(mask)
        rows = [self._rows[row] for row in header["rows"]]
        draws = self._work.draw(header["batch"], rows, out)
        for row, draw in zip(rows, draws):
            row.ids.append(draw.token)
        self._drawn += len(draws)
        told = {str(i): [draw.logprob, draw.top] for i, draw in enumerate(draws) if draw.logprob is not None}
        tokens = [draw.token for draw in draws]
        ring.outward.send({"op": "drawn", "number": header["number"], "tokens": tokens, "told": told})

    def _merge(self, ring: Ring, came: Message) -> None:
        self._work.stage.merge(came.header["batch"], came.header["other"])
        self._pass_on(ring, came)

    def _drop(self, ring: Ring, came: Message) -> None:
        self._left(self._work.stage.rows_of(came.header["batch"]))
        self._work.stage.drop(came.header["batch"])
        self._pass_on(ring, came)

    def _forget(self, ring: Ring, came: Message) -> None:
        self._left([came.header["row"]])
        self._work.stage.forget(came.header["row"])
        self._pass_on(ring, came)

    def _pass_on(self, ring: Ring, came: Message) -> None:
        if not self._last:
            ring.outward.send(came.header)

    def _left(self, rows: list[int]) -> None:
        for row in rows:
            self._rows.pop(row, None)
            self._lengths.pop(row, None)

    # --- what the agent hears

    def _step_made(self) -> None:
        self._activity.step += 1
        now = time.monotonic()
        if now - self._told_at >= PULSE_SECONDS:
            if not self._told_at:
                self._stats_at, self._drawn = now, 0
            self._send({"kind": "pulse", "step": self._activity.step, "busy": True})
            self._told_at = now
        if now - self._stats_at >= STATS_SECONDS:
            self._stats()

    def _stats(self) -> None:
        now = time.monotonic()
        active, peak = self._work.memory()
        self._send(
            {
                "kind": "stats",
                "step": self._activity.step,
                "rows": len(self._lengths),
                "waiting": 0,
                "kvBytes": int(sum(self._lengths.values()) * self._facts["kvBytesPerToken"]),
                "activeBytes": active,
                "peakBytes": peak,
                "prefixCacheBytes": 0,
                "prefillTokensPerSecond": 0,
                "decodeTokensPerSecond": round(self._drawn / max(now - self._stats_at, 1e-3), 1),
            }
        )
        self._stats_at, self._drawn = now, 0
