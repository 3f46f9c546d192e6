"""Sets of tokens as bits, thirty-two to a word: small enough to travel with a step to the stage that samples."""

import base64
import zlib
from collections.abc import Sequence
from typing import Protocol

import numpy as np

Words = np.ndarray  # of uint32: one bit per token of the vocabulary


class Mask(Protocol):
    """What a row that keeps to a grammar carries."""

    problem: str | None

    def words(self, ids: Sequence[int]) -> Words:
        """Bits of the tokens that may follow these, all of the answer so far."""


def mask_rows(rows: Sequence[tuple[Mask, Sequence[int]]], vocabulary: int) -> np.ndarray:
    """(rows, vocabulary) of booleans; what a row's words do not reach is not allowed."""
    words = np.stack([mask.words(ids) for mask, ids in rows])
    allowed = np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little").view(bool)
    missing = vocabulary - allowed.shape[-1]
    return allowed[:, :vocabulary] if missing <= 0 else np.pad(allowed, ((0, 0), (0, missing)))


class ArrivingMask:
    """A mask that comes with every step, from the head that knows the grammar."""

    problem: str | None = None

    def __init__(self) -> None:
        self._words: Words = np.zeros(1, np.uint32)

    def take(self, text: str) -> None:
        self._words = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint32)

    def words(self, ids: Sequence[int]) -> Words:
        return self._words


def packed(words: Words) -> str:
    """For a JSON header: most masks are nearly empty or nearly full, so they shrink to little."""
    return base64.b64encode(zlib.compress(words.tobytes(), 1)).decode()


def bits_of(tokens: frozenset[int], size: int) -> Words:
    words = np.zeros(size, np.uint32)
    for token in tokens:
        words[token >> 5] |= np.uint32(1 << (token & 31))
    return words
