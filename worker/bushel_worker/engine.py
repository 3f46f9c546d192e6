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

from collections.abc import Iterator

import mlx.core as mx

from .microbatch import Caches, MicroBatch
from .rows import Chunk, Draw, Row
from .stage import Stage


class MlxEngine:
    def __init__(self, stage: Stage, on_cpu: bool) -> None:
        self._stage, self._on_cpu = stage, on_cpu
        self._filling: dict[Row, Caches] = {}
        self._batches: dict[int, MicroBatch] = {}
        self._steps = 0

    def prefill(self, chunks: list[Chunk], slices: int) -> Iterator[None]:
        if len(chunks) > 1:
            yield from self._prefill_together(chunks, slices)
        else:
            row, start, end = chunks[0]
            if row not in self._filling:
                self._filling[row] = self._stage.new_caches()
            self._stage(mx.array([row.slice(start, end)]), self._filling[row])
            yield from _evaluated(self._filling[row], slices)
        mx.clear_cache()

    def step(self, batch: int, joining: list[Row], leaving: list[Row], forward: bool) -> None:
        if batch not in self._batches:
            self._batches[batch] = MicroBatch(self._on_cpu)
        found = self._batches[batch]
        if leaving:
            found.leave(set(leaving))
        found.step(self._stage, [(row, self._take(row)) for row in joining], forward)
        self._steps += 1
        if self._steps % 256 == 0:
            mx.clear_cache()

    def read(self, batch: int) -> list[Draw]:
        return self._batches[batch].read()

    def merge(self, batch: int, other: int) -> None:
        self._batches[batch].absorb(self._batches.pop(other))

    def drop(self, batch: int) -> None:
        self._batches.pop(batch, None)

    def forget(self, row: Row) -> None:
        self._filling.pop(row, None)

    def memory(self) -> tuple[int, int]:
        return mx.get_active_memory(), mx.get_peak_memory()

    def _prefill_together(self, chunks: list[Chunk], slices: int) -> Iterator[None]:
        rows = [row.slice(start, end) for row, start, end in chunks]
        caches = read_padded(self._stage, rows)
        yield from _evaluated(caches, slices)
        for index, chunk in enumerate(chunks):
            self._filling[chunk.row] = [cache.extract(index) for cache in caches]
        mx.eval([cache.state for chunk in chunks for cache in self._filling[chunk.row]])

    def _take(self, row: Row) -> Caches:
        return self._filling.pop(row, None) or self._stage.new_caches()


def read_padded(stage: Stage, rows: list[list[int]]) -> Caches:
    """Lazily reads several prompts in one pass, padded on the right; the caches are rolled to the left after."""
    lengths = [len(row) for row in rows]
    padding = [max(lengths) - length for length in lengths]
    alone = [stage.new_caches() for _ in rows]
    caches = [column[0].merge(list(column)) for column in zip(*alone)]
    if any(padding):
        for cache in caches:
            cache.prepare(lengths=lengths, right_padding=padding)
    stage(mx.array([row + [0] * pad for row, pad in zip(rows, padding)]), caches)
    if any(padding):
        for cache in caches:
            cache.finalize()
    return caches


def _evaluated(caches: Caches, slices: int) -> Iterator[None]:
    """Evaluates caches a few layers at a time: each is a proof of progress."""
    states = [cache.state for cache in caches]
    size = max(1, -(-len(states) // max(1, slices)))
    for start in range(0, len(states), size):
        mx.eval(states[start : start + size])
        yield
