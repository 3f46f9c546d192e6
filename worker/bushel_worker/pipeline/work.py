"""What a rank of a pipeline computes with, MLX or a script."""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..frames import Sampling
from ..rows import Chunk, Draw, Row
from ..stage_port import Span
from .wire import Tensor


@dataclass(eq=False, slots=True)
class TailRow:
    """A row as the last stage knows it: all that a draw depends on, and nothing of its text."""

    number: int
    sampling: Sampling
    prompt: list[int]  # distinct ids, where a penalty needs them
    ids: list[int]  # generated so far; their count alone matters without penalties
    logprobs: int | None
    constraint: Any = field(default=None, repr=False)  # the mask that came with the step
    history: Any = field(default=None, repr=False)


class Work(Protocol):
    """`entering` and what is returned are of the work's own kind; `packed` and `unpacked` put it on the wire."""

    def prompts(self, chunks: list[Chunk]) -> Any: ...

    def tokens(self, rows: list[Row]) -> Any: ...

    def prefill(self, spans: list[Span], entering: Any, slices: int) -> Generator[None, None, Any]: ...

    def step(self, batch: int, leaving: list[int], joining: list[int], entering: Any) -> Any: ...

    def packed(self, leaving: Any) -> Tensor: ...

    def unpacked(self, tensor: Tensor) -> Any: ...

    def draw(self, batch: int, rows: list[TailRow], leaving: Any) -> list[Draw]: ...

    def rest(self) -> None:
        """Nothing is to do for a while: gives back what is held only for reuse."""

    def memory(self) -> tuple[int, int]: ...

    stage: Any  # for merge, drop, forget, park, trim, rename, rows_of
