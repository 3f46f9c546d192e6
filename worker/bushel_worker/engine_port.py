"""What the loop drives, whatever is behind it: MLX, a script, a pipeline."""

from collections.abc import Callable, Generator, Iterator
from typing import Protocol

from .rows import Chunk, Draw, Row


class Engine(Protocol):
    """What the loop drives. Rows are told apart by identity, micro-batches by number."""

    reuses_prefixes: bool  # whether begin and evict may be called

    reads_first: bool
    """Whether a step's tokens are read before the next step begins. Where the layers and the draw are in one
    process, the next step is prepared before its tokens are known; a pipeline's first stage has to wait."""

    on_wait: Callable[[bool], None]
    """Of an engine that reads first: called now and then while it waits for other ranks, with whether they
    have made progress since."""

    def prefill(self, chunks: list[Chunk], slices: int) -> Iterator[None]:
        """Puts tokens of rows into their caches; yields after each of about `slices` parts of the work.
        Several chunks at once are the whole prompts of rows that have no caches yet."""

    def step(self, batch: int, joining: list[Row], leaving: list[Row], forward: bool) -> None:
        """Begins a step: rows leave, a token is drawn for the others, prefilled rows join, all go on."""

    def read(self, batch: int) -> list[Draw]:
        """Waits for what the step begun last has drawn."""

    def merge(self, batch: int, other: int) -> None: ...

    def drop(self, batch: int) -> None: ...

    def park(self) -> None:
        """Of an engine that reads first, and with no step under way: dissolves all micro-batches, so that their
        rows can join others."""

    def forget(self, row: Row) -> None:
        """A row that was being prefilled is no longer wanted."""

    def begin(self, row: Row, entry: int, tokens: int) -> None:
        """A row that has no caches yet takes over the first tokens of a kept entry. (Rows that leave with
        `kept_as` set become entries.)"""

    def evict(self, entry: int) -> None: ...

    embeds: bool  # whether embed may be called

    def embed(self, ids: list[int], chunk: int) -> Generator[None, None, bytes]:
        """The vector of a text; yields now and then."""

    def held(self, row: Row) -> int:
        """How many tokens the caches of a row in a micro-batch hold."""

    def memory(self) -> tuple[int, int]:
        """Bytes in use now, and at most so far."""
