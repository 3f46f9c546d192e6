"""What a stage does for whoever drives it: the engine of a whole model, the head of a pipeline, or the
service of a later stage. A stage held by one process (stage_rows) and one held by a world of ranks do the
same things; the latter tells its followers of each call, in order, before it computes.

Rows and micro-batches are known by number. Arrays that come in may be lazy, and those that go out are: a
caller evaluates what it needs. Ids (rows, tokens) enter the first stage and hidden states (rows, tokens,
width) any other; logits leave the last stage and hidden states any other."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:  # scripted ranks have spans but no arrays
    import mlx.core as mx


class Span(NamedTuple):
    """Tokens start..end of a row."""

    row: int
    start: int
    end: int


class StagePort(Protocol):
    first: bool
    last: bool

    def prefill(self, spans: list[Span], entering: mx.array, slices: int) -> Generator[None, None, mx.array]:
        """Reads tokens of rows into caches of their own. Evaluates in about `slices` parts, yielding after
        each, and returns what leaves. Several spans are the whole prompts of rows without caches, padded on
        the right to the longest; one span goes on where its row's caches end."""

    def step(self, batch: int, leaving: list[int], joining: list[int], entering: mx.array) -> mx.array:
        """One token more for every row of a micro-batch: rows leave and are forgotten, prefilled rows join
        at the end, and all of them go through the layers."""

    def merge(self, batch: int, other: int) -> None:
        """The rows of another micro-batch are put behind those of this one."""

    def drop(self, batch: int) -> None:
        """A micro-batch and its rows are forgotten."""

    def forget(self, row: int) -> None:
        """A row that is in no micro-batch is forgotten."""

    def park(self) -> dict[int, int]:
        """Dissolves all micro-batches: each row gets its own caches back, as after its prefill. Tells how
        many tokens each row holds."""

    def trim(self, row: int, tokens: int) -> bool:
        """Shortens a parked row's caches; False, and the row is forgotten, where that cannot be done."""

    def can_trim(self, row: int) -> bool:
        """Whether a parked row's caches can be shortened."""

    def rename(self, row: int, number: int) -> None:
        """A parked row goes on under another number."""

    def keep(self, batch: int, row: int, entry: int, tokens: int) -> None:
        """The caches of a row that is about to leave its micro-batch, or is parked, and that hold so many tokens,
        are kept under a number."""

    def begin(self, row: int, entry: int, tokens: int) -> None:
        """A new row takes over the first tokens of a kept entry, which stays."""

    def evict(self, entry: int) -> None: ...

    def held(self, row: int) -> int:
        """How many tokens the caches of a row hold."""

    def rows_of(self, batch: int) -> list[int]:
        """The rows of a micro-batch in their order; none when it does not exist."""
