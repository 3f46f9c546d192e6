"""The engine of a pipeline, as the head's loop sees it. It holds the first stage, sends what leaves it round the
ring, and reads the drawn tokens when they come back. Operations are carried out by every stage in the order
in which they were sent, so rows may join, leave and move between micro-batches that are still under way."""

import queue
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ..rows import Chunk, Draw, Row
from ..stage_port import Span
from .joining import described, masks_of
from .link import Activity, Message, PeerLost
from .ring import Ring
from .work import Work

WAIT_SECONDS = 0.2  # between two signs of life while waiting for tokens
CHUNKS_AHEAD = 2  # prompt chunks that may be under way beyond one per stage


class PipelineEngine:
    reads_first = True

    def __init__(self, work: Work, ring: Ring, stages: int, activity: Activity) -> None:
        self._work, self._ring, self._stages, self._activity = work, ring, stages, activity
        self.on_wait: Callable[[bool], None] = lambda progressed: None
        self._heard = 0
        self._numbers: dict[Row, int] = {}
        self._given = 0
        self._batches: dict[int, list[Row]] = {}
        self._flights: dict[int, list[tuple[int, list[Row]]]] = {}  # steps under way, by micro-batch
        self._drawn: dict[int, dict[str, Any]] = {}  # what came back, by step
        self._unwanted: set[int] = set()
        self._chunks: deque[int] = deque()  # prompt chunks under way
        self._sent = 0

    # --- the port

    def prefill(self, chunks: list[Chunk], slices: int) -> Iterator[None]:
        spans = [Span(self._number(row), start, end) for row, start, end in chunks]
        self._activity.busy = True
        out = yield from self._work.prefill(spans, self._work.prompts(chunks), slices)
        while len(self._chunks) >= self._stages + CHUNKS_AHEAD:
            self._receive()
        self._chunks.append(self._send({"op": "prefill", "spans": spans, "slices": slices}, self._work.packed(out)))

    def step(self, batch: int, joining: list[Row], leaving: list[Row], forward: bool) -> None:
        gone = set(leaving)
        rows = [row for row in self._batches.get(batch, []) if row not in gone] + joining
        self._batches[batch] = rows
        numbers = [self._number(row) for row in joining]
        left = [self._numbers.pop(row) for row in leaving]
        self._activity.busy = True
        out = self._work.step(batch, left, numbers, self._work.tokens(rows))
        header = {
            "op": "step",
            "batch": batch,
            "leave": left,
            "join": [described(row, number) for row, number in zip(joining, numbers)],
            "rows": [self._numbers[row] for row in rows],
            "at": [row.length for row in rows],
            "masks": masks_of(rows, [self._numbers[row] for row in rows]),
        }
        self._flights.setdefault(batch, []).append((self._send(header, self._work.packed(out)), rows))

    def read(self, batch: int) -> list[Draw]:
        draws = []
        for step, rows in self._flights.pop(batch, []):
            while step not in self._drawn:
                self._receive()
            told = self._drawn.pop(step)
            for index, (row, token) in enumerate(zip(rows, told["tokens"], strict=True)):
                logprob, top = told["told"].get(str(index), (None, None))
                draws.append(Draw(row, token, logprob, None if top is None else [(t, p) for t, p in top]))
        return draws

    def merge(self, batch: int, other: int) -> None:
        self._batches[batch] = self._batches[batch] + self._batches.pop(other)
        self._flights[batch] = self._flights.pop(batch, []) + self._flights.pop(other, [])
        self._work.stage.merge(batch, other)
        self._send({"op": "merge", "batch": batch, "other": other})

    def drop(self, batch: int) -> None:
        for row in self._batches.pop(batch, []):
            self._numbers.pop(row, None)
        self._unwanted.update(step for step, _ in self._flights.pop(batch, []))
        self._work.stage.drop(batch)
        self._send({"op": "drop", "batch": batch})

    def forget(self, row: Row) -> None:
        number = self._numbers.pop(row, None)
        if number is not None:
            self._work.stage.forget(number)
            self._send({"op": "forget", "row": number})

    def memory(self) -> tuple[int, int]:
        return self._work.memory()

    # --- the ring

    def gather(self, facts: dict[str, Any]) -> list[dict[str, Any]]:
        """What every stage says of itself once it is loaded, this one first."""
        number = self._send({"op": "gather", "facts": [facts]})
        while number not in self._drawn:
            self._receive()
        return self._drawn.pop(number)["facts"]

    def _send(self, header: dict[str, Any], tensor: Any = None) -> int:
        self._activity.step += 1
        self._activity.busy = False
        self._sent += 1
        self._ring.outward.send({**header, "number": self._sent}, tensor)
        return self._sent

    def _receive(self) -> None:
        while True:
            try:
                came: Message | PeerLost = self._ring.inbox.get(timeout=WAIT_SECONDS)
                break
            except queue.Empty:
                heard = self._ring.inward.heard + self._ring.outward.heard
                self.on_wait(heard != self._heard)
                self._heard = heard
        if isinstance(came, PeerLost):
            raise came
        header = came.header
        number = header["number"]
        if header["op"] == "read":
            self._chunks.remove(number)
        elif number in self._unwanted:
            self._unwanted.remove(number)
        else:
            self._drawn[number] = header

    def _number(self, row: Row) -> int:
        if row not in self._numbers:
            self._given += 1
            self._numbers[row] = self._given
        return self._numbers[row]
