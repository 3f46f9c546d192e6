"""What a stage of a pipeline holds of its rows beside their caches: how long they are, digests of their ids, and
what it has sent on. Head and later stages keep the same books."""

from typing import Any

from ..stage_port import Span
from .kept import Kept
from .wire import Tensor


Keep = tuple[int, int, int]  # a row that leaves, the entry it becomes, how many tokens it holds


class Holding:
    def __init__(self, stage: Any, kept_bytes_max: int) -> None:
        self._stage = stage
        self._kept = Kept(kept_bytes_max)
        self.lengths: dict[int, int] = {}
        self._digests: dict[int, list[tuple[int, str]]] = {}  # of the last two lengths
        self._entries: set[int] = set()  # kept prefixes

    def grew(self, spans: list[Span], digests: list[str]) -> None:
        for span, digest in zip(spans, digests, strict=True):
            self.lengths[span.row] = span.end
            self._digests[span.row] = [*self._digests.get(span.row, [])[-1:], (span.end, digest)]

    def sent(self, spans: list[Span], tensor: Tensor) -> None:
        self._kept.add(spans, tensor)

    def left(self, rows: list[int]) -> None:
        for row in rows:
            self.lengths.pop(row, None)
            self._digests.pop(row, None)
            self._kept.forget(row)

    def keep(self, batch: int, orders: list[Keep]) -> None:
        for row, entry, tokens in orders:
            self._stage.keep(batch, row, entry, tokens)
            self._kept.keep(row, entry)
            self._entries.add(entry)

    def begin(self, row: int, entry: int, tokens: int, digest: str) -> None:
        self._stage.begin(row, entry, tokens)
        self._kept.begin(row, entry, tokens)
        self.grew([Span(row, 0, tokens)], [digest])

    def evict(self, entry: int) -> None:
        self._stage.evict(entry)
        self._kept.evict(entry)
        self._entries.discard(entry)

    def _evict_all(self) -> None:
        """After a loss: some stage does not have them any more."""
        for entry in list(self._entries):
            self.evict(entry)

    def settle(self, wanted: dict[int, int]) -> dict[str, list[int]]:
        """After a loss: all rows but the wanted ones are forgotten, and those are no longer than wanted. Tells
        what is held and kept of each."""
        self._evict_all()
        held = self._stage.park()
        for row in held.keys() - wanted.keys():
            self._stage.forget(row)
        for row, tokens in wanted.items():
            if held.get(row, 0) > tokens:
                self._stage.trim(row, tokens)
            self._kept.trim(row, tokens)
        self.left([row for row in {*self.lengths, *held} if row not in wanted])
        self._kept.only(wanted)
        self.lengths = self._stage.park()
        for row in wanted:
            self._digests[row] = [known for known in self._digests.get(row, []) if known[0] <= wanted[row]]
        return {str(row): [self.lengths.get(row, 0), self._kept.tokens(row)] for row in wanted}

    def inventory(self) -> dict[str, list[tuple[int, str]]]:
        """For a head that knows none of the rows here: the lengths that each can go on from, and their digests."""
        self._evict_all()
        held = self._stage.park()
        self.lengths = dict(held)
        told = {}
        for row, tokens in held.items():
            usable = [k for k in self._digests.get(row, []) if k[0] == tokens or self._stage.can_trim(row)]
            told[str(row)] = usable
        return told

    def adopt(self, row: int, number: int, tokens: int) -> bool:
        """A row goes on under another number, as long as its new head knows it."""
        if not self._stage.trim(row, tokens):
            return False
        self._stage.rename(row, number)
        self._kept.trim(row, tokens)
        self._kept.rename(row, number)
        self.lengths.pop(row, None)
        self.lengths[number] = tokens
        self._digests[number] = [known for known in self._digests.pop(row, []) if known[0] <= tokens]
        return True

    def take(self, row: int, start: int, end: int) -> Tensor:
        return self._kept.take(row, start, end)
