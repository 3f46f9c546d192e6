"""Scripted stages: the same sockets, operations and checks as with a model, but the head already knows what
will be drawn and only sends it round. Next to each token goes its position in the answer, so that a script can
make any rank misbehave at any token."""

import random
import time
from array import array
from collections.abc import Generator
from typing import Any

from ..frames import Load
from ..rows import Chunk, Draw, Row
from ..scripted import END, Script, read_script, scripted_service
from ..service import Service
from ..stage_port import Span
from .head import PipelineEngine
from .member import Kind, Prepared, Progress, common_facts
from .wire import Tensor
from .work import TailRow

ANSWERS_MAX = 4096  # remembered; they can be made again


class ScriptedStage:
    """The bookkeeping of a stage without layers."""

    def __init__(self) -> None:
        self.batches: dict[int, list[int]] = {}
        self.tokens: dict[int, int] = {}

    def step(self, batch: int, leaving: list[int], joining: list[int]) -> None:
        gone = set(leaving)
        self.batches[batch] = [row for row in self.batches.get(batch, []) if row not in gone] + joining
        for row in leaving:
            self.tokens.pop(row, None)
        for row in self.batches[batch]:
            self.tokens[row] = self.tokens.get(row, 0) + 1

    def merge(self, batch: int, other: int) -> None:
        self.batches[batch] += self.batches.pop(other)

    def drop(self, batch: int) -> None:
        for row in self.batches.pop(batch, []):
            self.tokens.pop(row, None)

    def forget(self, row: int) -> None:
        self.tokens.pop(row, None)

    def park(self) -> dict[int, int]:
        self.batches.clear()
        return dict(self.tokens)

    def trim(self, row: int, tokens: int) -> bool:
        if self.tokens.get(row, -1) < tokens:
            return False
        self.tokens[row] = tokens
        return True

    def can_trim(self, row: int) -> bool:
        return True

    def rename(self, row: int, number: int) -> None:
        self.tokens[number] = self.tokens.pop(row)

    def rows_of(self, batch: int) -> list[int]:
        return list(self.batches.get(batch, []))


class ScriptedWork:
    def __init__(self, script: Script, load: Load) -> None:
        self.stage = ScriptedStage()
        self._script, self._first, self._last = script, load.first, load.last
        self._faulty = script.number("faultRank", 0) == load.rank
        self._answers: dict[Row, bytes] = {}
        self._due: dict[int, float] = {}
        self._chance = random.Random(1)

    def prompts(self, chunks: list[Chunk]) -> list[list[tuple[int, int]]]:
        longest = max(chunk.end - chunk.start for chunk in chunks)
        return [[(0, 0)] * longest for _ in chunks]

    def tokens(self, rows: list[Row]) -> list[list[tuple[int, int]]]:
        if len(self._answers) > ANSWERS_MAX:
            self._answers.clear()
        return [[(self._next(row), len(row.ids))] for row in rows]

    def _next(self, row: Row) -> int:
        answer = self._answers.get(row)
        if answer is None:
            self._answers[row] = answer = self._script.answer(row)[0]
        position = len(row.ids)
        return answer[position] if position < len(answer) else END if row.ends else 46

    def prefill(self, spans: list[Span], entering: Any, slices: int) -> Generator[None, None, Any]:
        for span in spans:
            self.stage.tokens[span.row] = span.end
        if self._first:
            count = sum(span.end - span.start for span in spans)
            seconds = count / self._script.number("prefillTokensPerSecond", 20000)
            for _ in range(slices):
                time.sleep(seconds / slices)
                yield
        return entering

    def step(self, batch: int, leaving: list[int], joining: list[int], entering: Any) -> Any:
        self.stage.step(batch, leaving, joining)
        if self._faulty:
            for ((_, position),) in entering:
                self._script.misbehave(position)
        return entering

    def packed(self, leaving: list[list[tuple[int, int]]]) -> Tensor:
        numbers = [number for row in leaving for pair in row for number in pair]
        return Tensor((len(leaving), len(leaving[0]), 2), "int32", array("i", numbers))

    def unpacked(self, tensor: Tensor) -> list[list[tuple[int, int]]]:
        numbers = array("i", bytes(tensor.data))
        pairs = list(zip(numbers[::2], numbers[1::2]))
        width = tensor.shape[1]
        return [pairs[start : start + width] for start in range(0, len(pairs), width)]

    def draw(self, batch: int, rows: list[TailRow], leaving: list[list[tuple[int, int]]]) -> list[Draw]:
        pause = 1 / self._script.number("tokensPerSecond", 20)
        pause += self._chance.random() * self._script.number("jitterMs", 0) / 1000
        now = time.monotonic()
        if len(self._due) > ANSWERS_MAX:
            self._due.clear()
        due = max(self._due[batch] + pause, now) if batch in self._due else now  # nobody waits for the first token
        self._due[batch] = due
        time.sleep(max(0.0, due - now))
        return [self._drawn(row, token) for row, ((token, _),) in zip(rows, leaving, strict=True)]

    def _drawn(self, row: TailRow, token: int) -> Draw:
        if row.logprobs is None:
            return Draw(row, token)  # type: ignore[arg-type]
        top = [(token, -0.25), (32, -2.5), (101, -3.5)][: row.logprobs]
        return Draw(row, token, -0.25, top)  # type: ignore[arg-type]

    def rest(self) -> None:
        pass

    def memory(self) -> tuple[int, int]:
        return 0, 0


def scripted_kind(load: Load) -> Kind:
    def prepare(progress: Progress) -> Prepared:
        script = read_script(load, progress)
        plain = scripted_service(load, script, None)

        def head_service(engine: PipelineEngine, vocabulary: int) -> Service:
            return scripted_service(load, script, engine)

        facts = {
            "layers": load.layers,
            "memory": {
                "capacity_bytes": plain.memory.capacity_bytes,
                "weights_bytes": 0,
                "working_bytes": 0,
                "costs": [{"per_token": plain.memory.per_token}],
            },
            "merging": plain.merging,
            "together": plain.reading_together,
            "tokensPerSecond": plain.tokens_per_second,
            "contextTokens": plain.context_tokens,
            "vocabulary": END + 1,
            "kvBytesPerToken": plain.memory.per_token,
            "keptBytesMax": 16 << 20,
        }
        return Prepared(ScriptedWork(script, load), facts, plain.memory, plain.device, plain.versions, head_service)

    return Kind(lambda: common_facts(load), prepare)
