"""What a stage has sent on, kept per row and bounded, so that the stage after it can be rebuilt when it is lost:
then only the lost layers compute again. It is a twentieth of what the caches of a model take."""

from typing import Any

from ..stage_port import Span
from .wire import ITEM_BYTES, Tensor


class Kept:
    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._rows: dict[int, bytearray] = {}
        self._gaps: set[int] = set()  # rows of which something was not kept: the rest is of no use
        self._entries: dict[int, bytearray] = {}  # of rows that have left and whose caches are kept
        self._kind: tuple[tuple[int, ...], str] = ((), "")
        self._held = 0

    def add(self, spans: list[Span], tensor: Tensor) -> None:
        """`spans`: of each row of the tensor; what is longer is padding."""
        _, width, *inner = tensor.shape
        self._kind = (tuple(inner), tensor.dtype)
        size = self._token_bytes()
        data = memoryview(tensor.data).cast("B")
        for index, (row, start, end) in enumerate(spans):
            if self.tokens(row) != start:
                self.forget(row)
                self._gaps.add(row)
            elif row not in self._gaps:
                at, count = index * width * size, (end - start) * size
                self._rows.setdefault(row, bytearray()).extend(data[at : at + count])
                self._held += count
        while self._held > self._bytes_max and self._entries:
            self.evict(next(iter(self._entries)))
        while self._held > self._bytes_max:
            largest = max(self._rows, key=lambda row: len(self._rows[row]))
            self.forget(largest)
            self._gaps.add(largest)

    def tokens(self, row: int) -> int:
        return len(self._rows[row]) // self._token_bytes() if row in self._rows else 0

    def trim(self, row: int, tokens: int) -> None:
        if row in self._rows:
            extra = len(self._rows[row]) - tokens * self._token_bytes()
            if extra > 0:
                del self._rows[row][-extra:]
                self._held -= extra

    def take(self, row: int, start: int, end: int) -> Tensor:
        inner, dtype = self._kind
        size = self._token_bytes()
        return Tensor((1, end - start, *inner), dtype, bytes(self._rows[row][start * size : end * size]))

    def rename(self, row: int, number: int) -> None:
        if row in self._rows:
            self._rows[number] = self._rows.pop(row)
        if row in self._gaps:
            self._gaps.discard(row)
            self._gaps.add(number)

    def keep(self, row: int, entry: int) -> None:
        if row in self._rows:
            self._entries[entry] = self._rows.pop(row)

    def begin(self, row: int, entry: int, tokens: int) -> None:
        found, size = self._entries.get(entry), tokens * self._token_bytes()
        if found is not None and len(found) >= size:
            self._rows[row] = found[:size]
            self._held += size

    def evict(self, entry: int) -> None:
        self._held -= len(self._entries.pop(entry, b""))

    def forget(self, row: int) -> None:
        self._held -= len(self._rows.pop(row, b""))
        self._gaps.discard(row)

    def only(self, rows: Any) -> None:
        for row in {*self._rows, *self._gaps} - set(rows):
            self.forget(row)

    def _token_bytes(self) -> int:
        inner, dtype = self._kind
        size = ITEM_BYTES.get(dtype, 1)
        for count in inner:
            size *= count
        return size
