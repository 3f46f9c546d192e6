"""A stage in this process with the caches of its rows and micro-batches.

A row alone keeps the plain caches it was prefilled with: they are the fastest, and they work for models
whose caches cannot be merged. From two rows on the caches are mlx-lm's batch caches."""

import copy
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx

from .embedding import body_of, last_state
from .stage import Stage
from .stage_port import Span

Caches = list[Any]


@dataclass
class BatchCaches:
    rows: list[int] = field(default_factory=list)
    caches: Caches = field(default_factory=list)

    def leave(self, leaving: set[int]) -> None:
        keep = [index for index, row in enumerate(self.rows) if row not in leaving]
        if len(keep) == len(self.rows):
            return
        if not keep:
            self.caches = []
        elif len(keep) == 1:
            self.caches = [cache.extract(keep[0]) for cache in self.caches]
        else:
            indices = mx.array(keep, mx.int32)
            for cache in self.caches:
                cache.filter(indices)
        self.rows = [self.rows[index] for index in keep]

    def join(self, rows: list[int], caches: list[Caches]) -> None:
        if len(self.rows) > 1:
            for cache, *column in zip(self.caches, *caches):
                cache.extend(column[0].merge(column))
        elif len(self.rows) + len(rows) == 1:
            self.caches = caches[0]
        else:
            columns = zip(*([self.caches] if self.rows else []), *caches)
            self.caches = [column[0].merge(list(column)) for column in columns]
        self.rows = self.rows + rows

    def absorb(self, other: "BatchCaches") -> None:
        mine, theirs = self._merged(), other._merged()
        for cache, joined in zip(mine, theirs):
            cache.extend(joined)
        self.caches, self.rows = mine, self.rows + other.rows

    def of(self, row: int) -> Caches:
        """One row's own caches."""
        return self.caches if len(self.rows) == 1 else [cache.extract(self.rows.index(row)) for cache in self.caches]

    def alone(self) -> Iterator[tuple[int, Caches]]:
        """Each row with caches of its own."""
        if len(self.rows) == 1:
            yield self.rows[0], self.caches
        else:
            for index, row in enumerate(self.rows):
                yield row, [cache.extract(index) for cache in self.caches]

    def _merged(self) -> Caches:
        return self.caches if len(self.rows) > 1 else [cache.merge([cache]) for cache in self.caches]


class StageRows:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.first, self.last = stage.first, stage.last
        self.filling: dict[int, Caches] = {}
        self.batches: dict[int, BatchCaches] = {}
        self.tokens: dict[int, int] = {}  # in the caches of each row
        self.embeds = body_of(stage) is not None
        self.kept: dict[int, tuple[Caches, int]] = {}  # caches of rows that are gone, and their tokens

    def prefill(self, spans: list[Span], entering: mx.array, slices: int) -> Generator[None, None, mx.array]:
        if len(spans) > 1:
            out = yield from self._prefill_together(spans, entering, slices)
        else:
            caches = self.filling.get(spans[0].row) or self._stage.new_caches()
            self.filling[spans[0].row] = caches
            out = self._stage(entering, caches)
            yield from self._evaluated(caches, slices)
        for span in spans:
            self.tokens[span.row] = span.end
        if not self.last:
            mx.eval(out)
        mx.clear_cache()
        return out

    def step(self, batch: int, leaving: list[int], joining: list[int], entering: mx.array) -> mx.array:
        found = self.batches.setdefault(batch, BatchCaches())
        if leaving:
            found.leave(set(leaving))
            self._forget(leaving)
        if joining:
            found.join(joining, [self.filling.pop(row, None) or self._stage.new_caches() for row in joining])
        out = self._stage(entering, found.caches)
        for row in found.rows:
            self.tokens[row] = self.tokens.get(row, 0) + 1
        return out

    def merge(self, batch: int, other: int) -> None:
        self.batches[batch].absorb(self.batches.pop(other))

    def drop(self, batch: int) -> None:
        found = self.batches.pop(batch, None)
        if found is not None:
            self._forget(found.rows)

    def forget(self, row: int) -> None:
        self.filling.pop(row, None)
        self.tokens.pop(row, None)

    def park(self) -> dict[int, int]:
        for batch in self.batches.values():
            for row, caches in batch.alone():
                self.filling[row] = caches
        self.batches.clear()
        return dict(self.tokens)

    def trim(self, row: int, tokens: int) -> bool:
        extra = self.tokens.get(row, 0) - tokens
        caches = self.filling.get(row)
        if caches is None or extra < 0:
            return False
        if extra > 0:
            if tokens == 0 or not self.can_trim(row):
                self.forget(row)
                return tokens == 0
            for cache in caches:
                if cache.trim(extra) != extra:
                    self.forget(row)
                    return False
            self.tokens[row] = tokens
        return True

    def can_trim(self, row: int) -> bool:
        return all(cache.is_trimmable() for cache in self.filling.get(row, ()))

    def rename(self, row: int, number: int) -> None:
        self.filling[number] = self.filling.pop(row)
        self.tokens[number] = self.tokens.pop(row)

    def keep(self, batch: int, row: int, entry: int, tokens: int) -> None:
        caches = self.filling[row] if row in self.filling else self.batches[batch].of(row)
        assert self.tokens[row] == tokens, "the head knows what a row holds"
        # What was taken out of a micro-batch would otherwise hold all of it.
        mx.eval([cache.state for cache in caches])
        self.kept[entry] = caches, tokens

    def begin(self, row: int, entry: int, tokens: int) -> None:
        caches, held = self.kept[entry]
        mine = copy.deepcopy(caches)  # shares its arrays until one of the two writes
        for cache in mine if held > tokens else ():
            cache.trim(held - tokens)
        self.filling[row], self.tokens[row] = mine, tokens

    def evict(self, entry: int) -> None:
        self.kept.pop(entry, None)

    def embed(self, ids: list[int], chunk: int) -> Generator[None, None, bytes]:
        """The vector of a text, with a model that is held whole."""
        return (yield from last_state(self._stage, ids, chunk))

    def held(self, row: int) -> int:
        return self.tokens.get(row, 0)

    def rows_of(self, batch: int) -> list[int]:
        found = self.batches.get(batch)
        return list(found.rows) if found else []

    def _prefill_together(
        self, spans: list[Span], entering: mx.array, slices: int
    ) -> Generator[None, None, mx.array]:
        out, caches = read_padded(self._stage, [span.end for span in spans], entering)
        yield from self._evaluated(caches, slices)
        for index, span in enumerate(spans):
            self.filling[span.row] = [cache.extract(index) for cache in caches]
        mx.eval([cache.state for span in spans for cache in self.filling[span.row]])
        return out

    def _evaluated(self, caches: Caches, slices: int) -> Iterator[None]:
        """Evaluates caches a few layers at a time: each is a proof of progress."""
        states = [cache.state for cache in caches]
        size = max(1, -(-len(states) // max(1, slices)))
        for start in range(0, len(states), size):
            mx.eval(states[start : start + size])
            yield

    def _forget(self, rows: list[int]) -> None:
        for row in rows:
            self.tokens.pop(row, None)


def read_padded(stage: Stage, lengths: list[int], entering: mx.array) -> tuple[mx.array, Caches]:
    """Lazily reads several prompts in one pass, padded on the right; the caches are rolled to the left after."""
    padding = [max(lengths) - length for length in lengths]
    alone = [stage.new_caches() for _ in lengths]
    caches = [column[0].merge(list(column)) for column in zip(*alone)]
    if any(padding):
        for cache in caches:
            cache.prepare(lengths=lengths, right_padding=padding)
    out = stage(entering, caches)
    if any(padding):
        for cache in caches:
            cache.finalize()
    return out, caches


def padded(rows: list[list[int]]) -> mx.array:
    longest = max(map(len, rows))
    return mx.array([row + [0] * (longest - len(row)) for row in rows])
