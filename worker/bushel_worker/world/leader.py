"""A stage held by a world, as whoever drives it sees it: the leader tells its followers of each call, in
order, before it computes its own part. Everything is evaluated in the order of the calls, on every rank: two
ranks that evaluate the same things in different orders add up the wrong ones."""

from collections.abc import Generator, Iterable
from typing import Any

import mlx.core as mx

from ..pipeline.link import Activity, Link
from ..stage_port import Span
from ..stage_rows import StageRows
from .lockstep import IDS, Lockstep, kind_of


class LeadingStage:
    def __init__(
        self, rows: StageRows, lockstep: Lockstep, followers: Iterable[Link], activity: Activity, waits: bool
    ) -> None:
        """`waits`: what a step gives is passed on at once, so it is waited for and looked at here."""
        self._rows, self._lockstep, self._followers = rows, lockstep, list(followers)
        self._activity, self._waits = activity, waits
        self.first, self.last = rows.first, rows.last

    def prefill(self, spans: list[Span], entering: mx.array, slices: int) -> Generator[None, None, mx.array]:
        shape, kind = list(entering.shape), kind_of(entering)
        ids = entering.tolist() if kind == IDS else None
        self._tell("prefill", spans=[list(span) for span in spans], slices=slices, shape=shape, kind=kind, ids=ids)
        entering = self._lockstep.known(entering) if ids else self._lockstep.enter(entering, shape, kind)
        work = self._rows.prefill(spans, entering, slices)
        while True:
            try:
                next(work)
            except StopIteration as done:
                self._lockstep.verify()
                self._done()
                return done.value
            self._activity.step += 1
            yield

    def step(self, batch: int, leaving: list[int], joining: list[int], entering: mx.array) -> mx.array:
        shape, kind = list(entering.shape), kind_of(entering)
        self._tell("step", batch=batch, leave=leaving, join=joining, shape=shape, kind=kind)
        out = self._rows.step(batch, leaving, joining, self._lockstep.enter(entering, shape, kind))
        if self._waits:
            mx.eval(out)
            self._lockstep.verify()
        else:
            mx.async_eval(out)
        self._done()
        return out

    def verify(self, unfinished: int) -> None:
        """To be called before anything that a step gave is passed on."""
        self._lockstep.verify(unfinished)

    def merge(self, batch: int, other: int) -> None:
        self._both("merge", batch=batch, other=other)

    def drop(self, batch: int) -> None:
        self._both("drop", batch=batch)

    def forget(self, row: int) -> None:
        self._both("forget", row=row)

    def park(self) -> dict[int, int]:
        return self._both("park")

    def trim(self, row: int, tokens: int) -> bool:
        return self._both("trim", row=row, tokens=tokens)

    def rename(self, row: int, number: int) -> None:
        self._both("rename", row=row, number=number)

    def keep(self, batch: int, row: int, entry: int, tokens: int) -> None:
        self._both("keep", batch=batch, row=row, entry=entry, tokens=tokens)

    def begin(self, row: int, entry: int, tokens: int) -> None:
        self._both("begin", row=row, entry=entry, tokens=tokens)

    def evict(self, entry: int) -> None:
        self._both("evict", entry=entry)

    def can_trim(self, row: int) -> bool:
        return self._rows.can_trim(row)

    def held(self, row: int) -> int:
        return self._rows.held(row)

    def rows_of(self, batch: int) -> list[int]:
        return self._rows.rows_of(batch)

    def _both(self, op: str, **named: int) -> Any:
        """What is done to caches alone: the same on every rank."""
        self._tell(op, **named)
        result = getattr(self._rows, op)(**named)
        self._done()
        return result

    def _done(self) -> None:
        self._activity.step += 1
        self._activity.busy = False

    def _tell(self, op: str, **told: Any) -> None:
        self._activity.busy = True
        header = {"op": op, "number": self._lockstep.number, **told}
        for link in self._followers:
            link.send(header)
