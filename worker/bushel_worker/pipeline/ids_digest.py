"""Digests of the ids of a row, so that a new head can tell whether a stage still holds the caches of exactly
these. They travel in sealed headers only: from a bare chain of digests ids could be guessed one by one."""

import hashlib
from typing import Any

from ..rows import Row


class IdsDigest:
    """Of one row, followed as it grows."""

    def __init__(self) -> None:
        self._hash: Any = hashlib.blake2b(digest_size=12)
        self._count = 0

    def at(self, row: Row, tokens: int) -> str:
        if tokens < self._count:
            self.__init__()  # type: ignore[misc]
        for token in row.slice(self._count, tokens):
            self._hash.update(token.to_bytes(4, "little"))
        self._count = tokens
        return self._hash.hexdigest()
