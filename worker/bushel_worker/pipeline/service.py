"""A stage after the first: takes operations from the stage before it, one after the other, does its layers'
part, and passes them on. The last one draws and tells the head. While it waits for operations it sleeps."""

import queue
import time
from collections.abc import Callable
from typing import Any

from ..stage_port import Span
from .holding import Holding
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
    def __init__(
        self, work: Work, index: int, last: bool, facts: dict[str, Any], activity: Activity, send: Send
    ) -> None:
        self._work, self._index, self._last, self._facts = work, index, last, facts
        self._activity, self._send = activity, send
        self._holding = Holding(work.stage, facts["keptBytesMax"])
        self._rows: dict[int, TailRow] = {}
        self._told_at = self._stats_at = 0.0
        self._drawn = 0
        self._perform = {
            "gather": self._gather,
            "prefill": self._prefill,
            "step": self._step,
            "merge": self._merge,
            "drop": self._drop,
            "forget": self._forget,
            "park": self._park,
            "survey": self._survey,
            "replay": self._replay,
            "fill": self._fill,
            "adopt": self._adopt,
            "begin": self._begin,
            "evict": self._evict,
            "read": self._pass_on,
        }

    def run(self, ring: Ring) -> None:
        """Until a neighbour is lost, which is raised. May be called again with another ring."""
        while True:
            came = self._next(ring)
            if isinstance(came, PeerLost):
                raise came
            self.perform(ring, came)

    def perform(self, ring: Ring, came: Message) -> None:
        self._activity.busy = True
        try:
            self._perform[came.header["op"]](ring, came)
        finally:
            self._activity.busy = False
        self._step_made()

    def _next(self, ring: Ring) -> Message | PeerLost:
        if self._told_at:
            try:
                return ring.inbox.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                self._work.rest()
                self._stats()
                self._send({"kind": "pulse", "step": self._activity.step, "busy": False})
                self._told_at = 0.0
        return ring.inbox.get()

    # --- operations of every day

    def _prefill(self, ring: Ring, came: Message) -> None:
        header = came.header
        spans = [Span(*span) for span in header["spans"]]
        out = self._computed(spans, came, header["slices"], header["digests"])
        if self._last:
            ring.outward.send({"op": "read", "number": header["number"]})
        else:
            ring.outward.send(header, out)

    def _step(self, ring: Ring, came: Message) -> None:
        header, held = came.header, self._holding
        assert came.tensor is not None
        held.keep(header["batch"], header["keep"])
        self._left(header["leave"])
        spans = [Span(row, length - 1, length) for row, length in zip(header["rows"], header["at"], strict=True)]
        self._check(spans)
        joining = [told["row"] for told in header["join"]]
        out = self._work.step(header["batch"], header["leave"], joining, self._work.unpacked(came.tensor))
        if self._work.stage.rows_of(header["batch"]) != header["rows"]:
            raise OutOfStep(f"micro-batch {header['batch']} holds other rows than the head's")
        held.grew(spans, header["digests"])
        if not self._last:
            tensor = self._work.packed(out)
            ring.outward.send(header, tensor)
            held.sent(spans, tensor)
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
        self._pass_down(ring, came)

    def _drop(self, ring: Ring, came: Message) -> None:
        self._holding.keep(came.header["batch"], came.header["keep"])
        self._left(self._work.stage.rows_of(came.header["batch"]))
        self._work.stage.drop(came.header["batch"])
        self._pass_down(ring, came)

    def _forget(self, ring: Ring, came: Message) -> None:
        self._holding.keep(-1, came.header["keep"])
        self._left([came.header["row"]])
        self._work.stage.forget(came.header["row"])
        self._pass_down(ring, came)

    def _park(self, ring: Ring, came: Message) -> None:
        self._work.stage.park()
        self._pass_down(ring, came)

    def _begin(self, ring: Ring, came: Message) -> None:
        header = came.header
        self._holding.begin(header["row"], header["entry"], header["tokens"], header["digest"])
        self._pass_down(ring, came)

    def _evict(self, ring: Ring, came: Message) -> None:
        self._holding.evict(came.header["entry"])
        self._pass_down(ring, came)

    # --- operations of a group that forms, or forms again

    def _gather(self, ring: Ring, came: Message) -> None:
        """What this stage is, and which rows it still holds from before the head was lost."""
        header = came.header
        self._rows.clear()
        told = {**self._facts, "rows": self._holding.inventory()}
        ring.outward.send({**header, "facts": [*header["facts"], told]})

    def _survey(self, ring: Ring, came: Message) -> None:
        """The head is as before, another stage may not be."""
        header = came.header
        self._rows.clear()
        told = self._holding.settle({int(row): tokens for row, tokens in header["rows"].items()})
        ring.outward.send({**header, "held": [*header["held"], told]})

    def _replay(self, ring: Ring, came: Message) -> None:
        """The stage before the lost ones sends them what it kept."""
        header = came.header
        if header["first"] == self._index + 1:
            send_kept(ring, self._holding, header)
        else:
            ring.outward.send(header)

    def _fill(self, ring: Ring, came: Message) -> None:
        """A part of a row that this stage has lost and another has kept."""
        header = came.header
        span = Span(*header["span"])
        out = self._computed([span], came, 1, [header["digest"]])
        if self._index < header["last"]:
            ring.outward.send(header, out)
        elif header["number"]:
            ring.outward.send({"op": "read", "number": header["number"]})

    def _adopt(self, ring: Ring, came: Message) -> None:
        header = came.header
        if not self._holding.adopt(header["from"], header["row"], header["tokens"]):
            raise OutOfStep(f"row {header['from']} cannot go on from {header['tokens']} tokens")
        self._pass_down(ring, came)

    # ---

    def _computed(self, spans: list[Span], came: Message, slices: int, digests: list[str]) -> Any:
        assert came.tensor is not None
        self._check(spans)
        work = self._work.prefill(spans, self._work.unpacked(came.tensor), slices)
        while True:
            try:
                next(work)
                self._step_made()
            except StopIteration as done:
                out = done.value
                break
        self._holding.grew(spans, digests)
        if self._last:
            return None
        tensor = self._work.packed(out)
        self._holding.sent(spans, tensor)
        return tensor

    def _check(self, spans: list[Span]) -> None:
        for span in spans:
            held = self._holding.lengths.get(span.row, 0)
            if held != span.start:
                raise OutOfStep(f"row {span.row} holds {held} tokens, not {span.start}")

    def _pass_on(self, ring: Ring, came: Message) -> None:
        ring.outward.send(came.header)

    def _pass_down(self, ring: Ring, came: Message) -> None:
        if not self._last:
            ring.outward.send(came.header)

    def _left(self, rows: list[int]) -> None:
        self._holding.left(rows)
        for row in rows:
            self._rows.pop(row, None)

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
        lengths = self._holding.lengths
        self._send(
            {
                "kind": "stats",
                "step": self._activity.step,
                "rows": len(lengths),
                "waiting": 0,
                "kvBytes": int(sum(lengths.values()) * self._facts["kvBytesPerToken"]),
                "activeBytes": active,
                "peakBytes": peak,
                "prefixCacheBytes": 0,
                "prefillTokensPerSecond": 0,
                "decodeTokensPerSecond": round(self._drawn / max(now - self._stats_at, 1e-3), 1),
            }
        )
        self._stats_at, self._drawn = now, 0


def send_kept(ring: Ring, holding: Holding, order: dict[str, Any]) -> None:
    """Carries out an order to replay: a row's kept states in chunks, the last of which is answered."""
    row, start, end = order["row"], order["start"], order["end"]
    for at in range(start, end, order["chunk"]):
        upto = min(end, at + order["chunk"])
        header = {
            "op": "fill",
            "span": [row, at, upto],
            "digest": order["digest"],
            "last": order["last"],
            "number": order["number"] if upto == end else 0,
        }
        ring.outward.send(header, holding.take(row, at, upto))
