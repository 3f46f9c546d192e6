"""The engine of one rank that holds a whole model: prefill and micro-batches on a stage.

One step is always prepared ahead: as soon as a token is drawn (still lazily), the layers of the next
step are queued behind it, and only then is the token read. While the device runs, the head turns the
token before into text. What sampling depends on (penalties, finished rows) is known by then, because a
step's tokens are drawn when it is next this micro-batch's turn.

On a CPU the queue is the processor itself: MLX's async_eval returns only when all but the last few
operations are done. There the next step's graph is built ahead but handed over together with its
draw, so that a token can be sent before, not after, the next step is computed.

Everything runs on the one thread that calls this and on its default stream: two streams of one process
race in MLX's collectives, and a world of ranks will share this code.
"""

from collections.abc import Generator, Iterator

import mlx.core as mx

from .microbatch import MicroBatch
from .rows import Chunk, Draw, Row
from .stage_port import Span, StagePort
from .stage_rows import padded


class MlxEngine:
    reads_first = False

    def __init__(self, stage: StagePort, on_cpu: bool) -> None:
        self._stage, self._on_cpu = stage, on_cpu
        self.reuses_prefixes = hasattr(stage, "keep")
        self.embeds = bool(getattr(stage, "embeds", False))
        self._batches: dict[int, MicroBatch] = {}
        self._numbers: dict[Row, int] = {}
        self._given = 0
        self._steps = 0

    def prefill(self, chunks: list[Chunk], slices: int) -> Iterator[None]:
        spans = [Span(self._number(row), start, end) for row, start, end in chunks]
        entering = padded([row.slice(start, end) for row, start, end in chunks])
        yield from self._stage.prefill(spans, entering, slices)

    def step(self, batch: int, joining: list[Row], leaving: list[Row], forward: bool) -> None:
        if batch not in self._batches:
            self._batches[batch] = MicroBatch(self._on_cpu)
        found = self._batches[batch]
        self._keep(batch, leaving)
        found.leave(set(leaving))
        drawn = found.draw()
        found.join(joining)
        gone = [self._numbers.pop(row) for row in leaving]
        if forward:
            first = mx.array([row.last for row in joining], mx.uint32)
            tokens = first if drawn is None else mx.concatenate([drawn, first]) if joining else drawn
            numbers = [self._number(row) for row in joining]
            found.logits = self._stage.step(batch, gone, numbers, tokens[:, None])[:, -1]
            if not self._on_cpu:
                mx.async_eval(found.logits)
        self._steps += 1
        if self._steps % 256 == 0:
            mx.clear_cache()

    def read(self, batch: int) -> list[Draw]:
        return self._batches[batch].read()

    def merge(self, batch: int, other: int) -> None:
        self._batches[batch].absorb(self._batches.pop(other))
        self._stage.merge(batch, other)

    def drop(self, batch: int) -> None:
        found = self._batches.pop(batch, None)
        self._keep(batch, found.rows if found else [])
        for row in found.rows if found else ():
            self._numbers.pop(row, None)
        self._stage.drop(batch)

    def forget(self, row: Row) -> None:
        number = self._numbers.pop(row, None)
        if number is not None:
            self._stage.forget(number)

    def begin(self, row: Row, entry: int, tokens: int) -> None:
        self._stage.begin(self._number(row), entry, tokens)

    def evict(self, entry: int) -> None:
        self._stage.evict(entry)

    def embed(self, ids: list[int], chunk: int) -> Generator[None, None, bytes]:
        return (yield from self._stage.embed(ids, chunk))

    def held(self, row: Row) -> int:
        return self._stage.held(self._numbers[row])

    def _keep(self, batch: int, leaving: list[Row]) -> None:
        for row in leaving:
            if row.kept_as is not None and row in self._numbers:
                self._stage.keep(batch, self._numbers[row], row.kept_as, row.kept_tokens)
                row.kept_as = None

    def memory(self) -> tuple[int, int]:
        return mx.get_active_memory(), mx.get_peak_memory()

    def _number(self, row: Row) -> int:
        if row not in self._numbers:
            self._given += 1
            self._numbers[row] = self._given
        return self._numbers[row]
