"""Decides what the engine does next: who is let in, whose prompt is read, which rows step together. Pure
bookkeeping: no clock, no tensors, no text.

A row waits, then its prompt is prefilled in chunks, then it joins a micro-batch and is decoded. It can
go back to waiting when memory runs short (see memory.py)."""

from bisect import insort
from dataclasses import dataclass, field

from .memory import GROWTH, MemoryPlan
from .rows import Row

PREFILLS_MAX = 8  # prompts read by turns, so that a short one need not wait for a long one


@dataclass(eq=False)
class Prefill:
    row: Row
    done: int = 0

    @property
    def left(self) -> int:
        return self.row.prefill_target - self.done


@dataclass(eq=False)
class Batch:
    """A micro-batch as the head sees it."""

    number: int
    rows: list[Row] = field(default_factory=list)  # in the engine's micro-batch, or about to leave it
    joining: list[Row] = field(default_factory=list)
    leaving: list[Row] = field(default_factory=list)

    @property
    def members(self) -> list[Row]:
        gone = set(self.leaving)
        return [row for row in self.rows if row not in gone] + self.joining

    @property
    def width(self) -> int:
        return max((row.length for row in self.members), default=0)


class Scheduler:
    def __init__(self, memory: MemoryPlan, rows_max: int, merging: bool, reading_together: bool, spread: int = 1) -> None:
        """`spread`: how many micro-batches there should be before any of them gets a second row, one for
        each stage of a pipeline, so that all stages have something to do."""
        self._spread = spread
        self._memory, self._rows_max, self._merging = memory, rows_max, merging
        self._reading_together = reading_together
        self.waiting: list[Row] = []  # oldest first
        self.prefills: list[Prefill] = []
        self.batches: list[Batch] = []
        self._numbers = 0
        self._turn = 0

    # --- who is where

    @property
    def idle(self) -> bool:
        return not (self.waiting or self.prefills or self.batches)

    @property
    def decoding(self) -> list[Row]:
        return [row for batch in self.batches for row in batch.members]

    def add(self, row: Row) -> None:
        insort(self.waiting, row, key=lambda other: other.order)

    def remove(self, attempt: str) -> tuple[Row, str] | None:
        """Takes a row out, wherever it is: (row, "waiting" | "prefill" | "decoding")."""
        for row in self.waiting:
            if row.attempt == attempt:
                self.waiting.remove(row)
                return row, "waiting"
        for prefill in self.prefills:
            if prefill.row.attempt == attempt:
                self.prefills.remove(prefill)
                return prefill.row, "prefill"
        for batch in self.batches:
            for row in batch.members:
                if row.attempt == attempt:
                    return row, self.leave(batch, row)
        return None

    def leave(self, batch: Batch, row: Row) -> str:
        """A row is done with its micro-batch. One that never stepped in it was only prefilled."""
        if row in batch.joining:
            batch.joining.remove(row)
            return "prefill"
        batch.leaving.append(row)
        return "decoding"

    def settle(self, batch: Batch) -> None:
        """The engine has begun a step of this micro-batch: leavers are gone and joiners are in."""
        batch.rows = batch.members
        batch.joining, batch.leaving = [], []

    def rejoin(self) -> None:
        """The engine has lost its micro-batches but not its rows: all join again."""
        for batch in self.batches:
            batch.joining, batch.rows, batch.leaving = batch.members, [], []

    # --- memory

    def used_bytes(self) -> int:
        held = sum(len(batch.members) * self._memory.row_bytes(batch.width) for batch in self.batches if batch.members)
        return held + sum(self._joined_bytes(prefill.row) for prefill in self.prefills)

    def admit(self) -> list[Prefill]:
        """Lets waiting rows in, oldest first, while there are rows and memory for them."""
        let_in = []
        while self.waiting and len(self.prefills) < PREFILLS_MAX:
            if len(self.prefills) + len(self.decoding) >= self._rows_max:
                break
            row = self.waiting[0]
            others = self.decoding + [prefill.row for prefill in self.prefills]
            if others:
                growth = sum(self._growth_bytes(other, row.gave_up) for other in others)
                if self.used_bytes() + self._joined_bytes(row) + growth > self._memory.capacity_bytes:
                    break
            self.prefills.append(Prefill(self.waiting.pop(0)))
            let_in.append(self.prefills[-1])
        return let_in

    def overdrawn(self) -> Row | None:
        """The youngest row, when the next step would need more memory than there is."""
        if self.used_bytes() <= self._memory.capacity_bytes:
            return None
        rows = [prefill.row for prefill in self.prefills] + self.decoding
        return max(rows, key=lambda row: row.order) if len(rows) > 1 else None

    def _growth_bytes(self, row: Row, to_the_end: bool) -> int:
        end = len(row.prompt) + row.tokens_max if to_the_end else row.length + GROWTH
        return self._memory.row_bytes(end) - self._memory.row_bytes(row.length)

    def _joined_bytes(self, row: Row) -> int:
        """A row that is being read: its own caches, and its place in the micro-batch it will join."""
        batch = self._place(row)
        if batch is None:
            return self._memory.row_bytes(row.length)
        width, count = max(batch.width, row.length), len(batch.members)
        joined = (count + 1) * self._memory.row_bytes(width) - count * self._memory.row_bytes(batch.width)
        return joined + self._memory.row_bytes(row.length)

    # --- prefill

    def next_prefill(self) -> Prefill | None:
        """By turns the oldest prompt and the one with least left to read; `take_turn` says when one was read."""
        if not self.prefills:
            return None
        if self._turn % 2 == 0:
            return min(self.prefills, key=lambda prefill: prefill.row.order)
        return min(self.prefills, key=lambda prefill: (prefill.left, prefill.row.order))

    def take_turn(self) -> None:
        self._turn += 1

    def beside(self, prefill: Prefill, tokens: int) -> list[Prefill]:
        """It and the other short prompts that can be read in one pass of at most so many tokens."""
        group = [prefill]
        if not self._reading_together or prefill.done or not 0 < prefill.left <= tokens:
            return group
        longest = prefill.left
        for other in self.prefills:
            wide = max(longest, other.left)
            if other is not prefill and not other.done and other.left and wide * (len(group) + 1) <= tokens:
                group.append(other)
                longest = wide
        return group

    def prefilled(self, prefill: Prefill) -> None:
        """A prompt is read: its row joins the micro-batch where it costs least."""
        self.prefills.remove(prefill)
        batch = self._place(prefill.row)
        if batch is None:
            self._numbers += 1
            batch = Batch(self._numbers)
            self.batches.append(batch)
        batch.joining.append(prefill.row)

    def _place(self, row: Row) -> Batch | None:
        """Rows share a step unless reading the padding would take longer than reading the weights again."""
        if len(self.batches) < self._spread:
            return None
        best, least = None, (0, float("inf"))
        for batch in self.batches if self._merging else ():
            lengths = [member.length for member in batch.members]
            if lengths:
                padding = self._memory.padding_bytes([*lengths, row.length])
                more = padding - self._memory.padding_bytes(lengths)
                cost = (len(lengths) if self._spread > 1 else 0, more)
                if padding <= self._memory.weights_bytes and (best is None or cost < least):
                    best, least = batch, cost
        return best

    # --- micro-batches

    def drop_empty(self) -> list[Batch]:
        empty = [batch for batch in self.batches if not batch.members]
        self.batches = [batch for batch in self.batches if batch.members]
        return empty

    def mergeable(self) -> tuple[Batch, Batch] | None:
        """Two settled micro-batches that would be cheaper as one: after rows have left, padding that was
        too much may be little. Half of the weights, not all, so that none is split and merged in turns."""
        if not self._merging or len(self.batches) <= self._spread:
            return None
        settled = [batch for batch in self.batches if not batch.joining and not batch.leaving]
        room = self._memory.capacity_bytes - self.used_bytes()
        for index, batch in enumerate(settled):
            for other in settled[index + 1 :]:
                lengths = [row.length for row in batch.rows + other.rows]
                needed = len(lengths) * self._memory.row_bytes(max(lengths))  # the old ones are freed only after
                if self._memory.padding_bytes(lengths) <= self._memory.weights_bytes / 2 and needed <= room:
                    return batch, other
        return None

    def merged(self, batch: Batch, other: Batch) -> None:
        batch.rows = batch.rows + other.rows
        self.batches.remove(other)
