"""A micro-batch of a whole model: rows that step together and the logits that wait to be sampled. Between
two steps `logits` has one line for every row; the caches are the stage's."""

import mlx.core as mx

from .rows import Draw, Row
from .sampling import SamplingPlan


class MicroBatch:
    def __init__(self, on_cpu: bool) -> None:
        self._on_cpu = on_cpu
        self.rows: list[Row] = []
        self.logits: mx.array | None = None
        self._plan: SamplingPlan | None = None
        self._drawn: tuple[SamplingPlan, tuple[mx.array, ...]] | None = None

    def leave(self, leaving: set[Row]) -> None:
        keep = [index for index, row in enumerate(self.rows) if row not in leaving]
        if len(keep) == len(self.rows):
            return
        if not keep:
            self.logits = None
        elif self.logits is not None:
            self.logits = self.logits[mx.array(keep, mx.int32)]
        self._set_rows([self.rows[index] for index in keep])

    def draw(self) -> mx.array | None:
        """Begins to draw a token for every row, and returns the lazy ids."""
        if self.logits is None:
            return None
        self._plan = self._plan or SamplingPlan(self.rows, self._on_cpu)
        drawn = self._plan.draw(self.logits)
        mx.async_eval(*drawn)
        self._drawn = (self._plan, drawn)
        self.logits = None
        return drawn[0]

    def join(self, joining: list[Row]) -> None:
        if joining:
            self._set_rows(self.rows + joining)

    def read(self) -> list[Draw]:
        """Waits for the tokens of the last step."""
        drawn, self._drawn = self._drawn, None
        return drawn[0].read(drawn[1]) if drawn else []

    def absorb(self, other: "MicroBatch") -> None:
        """Takes over the rows of another micro-batch, between two steps."""
        assert self.logits is not None and other.logits is not None
        self.logits = mx.concatenate([self.logits, other.logits])
        self._set_rows(self.rows + other.rows)

    def _set_rows(self, rows: list[Row]) -> None:
        self.rows, self._plan = rows, None
