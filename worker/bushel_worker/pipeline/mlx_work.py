"""A stage's computation with MLX: layers on arrays, arrays on the wire, and the draw on the last stage."""

from collections.abc import Generator

import mlx.core as mx
import numpy as np

from ..rows import Chunk, Draw, Row
from ..sampling import SamplingPlan
from ..stage_port import Span, StagePort
from ..stage_rows import padded
from .wire import Tensor
from .work import TailRow

_NUMPY = {"float32": np.float32, "float16": np.float16, "bfloat16": np.uint16, "int32": np.int32}


class MlxWork:
    def __init__(self, stage: StagePort, on_cpu: bool) -> None:
        self.stage, self._on_cpu = stage, on_cpu
        self._plans: dict[int, tuple[list[TailRow], SamplingPlan]] = {}
        self._steps = 0

    def prompts(self, chunks: list[Chunk]) -> mx.array:
        return padded([chunk.row.slice(chunk.start, chunk.end) for chunk in chunks])

    def tokens(self, rows: list[Row]) -> mx.array:
        return mx.array([[row.last] for row in rows], mx.uint32)

    def prefill(self, spans: list[Span], entering: mx.array, slices: int) -> Generator[None, None, mx.array]:
        return (yield from self.stage.prefill(spans, entering, slices))

    def step(self, batch: int, leaving: list[int], joining: list[int], entering: mx.array) -> mx.array:
        out = self.stage.step(batch, leaving, joining, entering)
        if not self.stage.last:
            mx.eval(out)
        self._steps += 1
        if self._steps % 256 == 0:
            mx.clear_cache()
        return out

    def packed(self, leaving: mx.array) -> Tensor:
        dtype = str(leaving.dtype).rpartition(".")[2]
        shape = tuple(leaving.shape)
        return Tensor(shape, dtype, memoryview(leaving.view(mx.uint16) if dtype == "bfloat16" else leaving))

    def unpacked(self, tensor: Tensor) -> mx.array:
        array = mx.array(np.frombuffer(tensor.data, _NUMPY[tensor.dtype]).reshape(tensor.shape))
        return array.view(mx.bfloat16) if tensor.dtype == "bfloat16" else array

    def draw(self, batch: int, rows: list[TailRow], leaving: mx.array) -> list[Draw]:
        if len(self._plans) > 64:  # of micro-batches that are long gone
            self._plans = {number: plan for number, plan in self._plans.items() if self.stage.rows_of(number)}
        known = self._plans.get(batch)
        if known is None or known[0] != rows:
            # Rows are told apart by identity, so a plan is good as long as the same rows step together.
            self._plans[batch] = known = (list(rows), SamplingPlan(rows, self._on_cpu))
        drawn = known[1].draw(leaving[:, -1])
        mx.eval(*drawn)
        return known[1].read(drawn)

    def rest(self) -> None:
        mx.clear_cache()

    def memory(self) -> tuple[int, int]:
        return mx.get_active_memory(), mx.get_peak_memory()
