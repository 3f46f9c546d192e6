"""Sets of tokens as bits, thirty-two to a word: small enough to travel with a step to the stage that samples."""

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


def bits_of(tokens: frozenset[int], size: int) -> Words:
    words = np.zeros(size, np.uint32)
    for token in tokens:
        words[token >> 5] |= np.uint32(1 << (token & 31))
    return words
