"""The engine and the language of an encoder: texts in, vectors out, nothing is ever written."""

from collections.abc import Generator, Iterator
from typing import Any

import mlx.core as mx

from ..language import ConstraintRefused
from ..prompts import encode_prompt
from ..rows import Chunk, Draw, Row
from ..text import ByteDecoder, TextPlan
from .model import Encoder
from .pooling import pooled


class EncoderEngine:
    reads_first = False
    reuses_prefixes = False
    embeds = True
    writes = False

    def __init__(self, model: Encoder, ways: tuple[str, ...]) -> None:
        self._model, self._ways = model, ways

    def embed(self, ids: list[int], chunk: int) -> Generator[None, None, bytes]:
        states = mx.zeros((1, 1, 1))
        for states in self._model.states(ids, chunk):  # noqa: B007  (the last ones are wanted)
            mx.eval(states)
            yield
        return pooled(states[0], self._ways)

    def memory(self) -> tuple[int, int]:
        return mx.get_active_memory(), mx.get_peak_memory()

    # The intake lets nothing through that would write an answer.

    def prefill(self, chunks: list[Chunk], slices: int) -> Iterator[None]:
        raise AssertionError("an encoder reads no prompts")

    def step(self, batch: int, joining: list[Row], leaving: list[Row], forward: bool) -> None:
        raise AssertionError("an encoder takes no steps")

    def read(self, batch: int) -> list[Draw]:
        raise AssertionError("an encoder draws nothing")


class EncoderLanguage:
    ends: frozenset[int] = frozenset()

    def __init__(self, tokenizer: Any, vocabulary: int) -> None:
        self._tokenizer, self.vocabulary = tokenizer, vocabulary
        self.abilities = {"chat": False, "tools": False, "reasoning": False, "grammar": False, "embeddings": True}

    def encode(self, prompt: dict[str, Any]) -> list[int]:
        return encode_prompt(self._tokenizer, prompt, self.vocabulary)

    def constraint(self, prompt: dict[str, Any], ids: list[int], grammar: dict[str, Any] | None) -> None:
        raise ConstraintRefused("an encoder writes no answers")

    def text_plan(self, prompt: dict[str, Any], ids: list[int], stops: list[str]) -> TextPlan:
        return TextPlan(ByteDecoder([], False), stops)

    def label(self, token: int) -> tuple[str, list[int] | None]:
        return str(self._tokenizer.convert_ids_to_tokens(token) or ""), None
