"""A micro-batch: rows that step together, their caches, and the logits that wait to be sampled.

A row alone keeps the plain caches it was prefilled with: they are the fastest, and they work for models
whose caches cannot be merged. From two rows on the caches are mlx-lm's batch caches. Between two steps
`logits` has one line for every row."""

from typing import Any

import mlx.core as mx

from .rows import Draw, Row
from .sampling import SamplingPlan
from .stage import Stage

Caches = list[Any]


class MicroBatch:
    def __init__(self, on_cpu: bool) -> None:
        self._on_cpu = on_cpu
        self.rows: list[Row] = []
        self.caches: Caches = []
        self.logits: mx.array | None = None
        self._plan: SamplingPlan | None = None
        self._drawn: tuple[SamplingPlan, tuple[mx.array, ...]] | None = None

    def leave(self, leaving: set[Row]) -> None:
        keep = [index for index, row in enumerate(self.rows) if row not in leaving]
        if len(keep) == len(self.rows):
            return
        if not keep:
            self.caches, self.logits = [], None
        else:
            indices = mx.array(keep, mx.int32)
            if self.logits is not None:
                self.logits = self.logits[indices]
            if len(keep) == 1:
                self.caches = [cache.extract(keep[0]) for cache in self.caches]
            else:
                for cache in self.caches:
                    cache.filter(indices)
        self._set_rows([self.rows[index] for index in keep])

    def step(self, stage: Stage, joining: list[tuple[Row, Caches]], forward: bool) -> None:
        """Draws a token for every row, takes in the joining rows and runs all of them through the layers."""
        drawn = None
        if self.logits is not None:
            self._plan = self._plan or SamplingPlan(self.rows, self._on_cpu)
            drawn = self._plan.draw(self.logits)
            mx.async_eval(*drawn)
            self._drawn = (self._plan, drawn)
        self._join(joining)
        self.logits = None
        if not forward:
            return
        first = mx.array([row.last for row, _ in joining], mx.uint32)
        tokens = first if drawn is None else mx.concatenate([drawn[0], first]) if joining else drawn[0]
        self.logits = stage(tokens[:, None], self.caches)[:, -1]
        if not self._on_cpu:
            mx.async_eval(self.logits)

    def read(self) -> list[Draw]:
        """Waits for the tokens of the last step."""
        drawn, self._drawn = self._drawn, None
        return drawn[0].read(drawn[1]) if drawn else []

    def absorb(self, other: "MicroBatch") -> None:
        """Takes over the rows of another micro-batch, between two steps."""
        assert self.logits is not None and other.logits is not None
        mine, theirs = self._merged(), other._merged()
        for cache, joined in zip(mine, theirs):
            cache.extend(joined)
        self.caches = mine
        self.logits = mx.concatenate([self.logits, other.logits])
        self._set_rows(self.rows + other.rows)

    def _join(self, joining: list[tuple[Row, Caches]]) -> None:
        if not joining:
            return
        caches = [caches for _, caches in joining]
        if len(self.rows) > 1:
            for cache, *column in zip(self.caches, *caches):
                cache.extend(column[0].merge(column))
        elif len(self.rows) + len(joining) == 1:
            self.caches = caches[0]
        else:
            columns = zip(*([self.caches] if self.rows else []), *caches)
            self.caches = [column[0].merge(list(column)) for column in columns]
        self._set_rows(self.rows + [row for row, _ in joining])

    def _merged(self) -> Caches:
        return self.caches if len(self.rows) > 1 else [cache.merge([cache]) for cache in self.caches]

    def _set_rows(self, rows: list[Row]) -> None:
        self.rows, self._plan = rows, None
