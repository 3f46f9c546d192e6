"""Beginnings of conversations whose caches are kept, so that the next turn need not be read again.

The head alone decides what is kept, reused and dropped; stages do as they are told, by number. Whatever a
finished row held is kept under the ids it stands for, within a budget of bytes, least recently used first
out; rows that are being answered always come first. Requests share entries only within one scope."""

import array
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

TOKENS_MIN = 32  # shorter ones are read faster than looked after


@dataclass
class Entry:
    scope: str
    ids: array.array  # of 32-bit ids
    size: int
    pins: int = 0  # rows that were promised it and have not begun


@dataclass(frozen=True)
class Hit:
    entry: int
    tokens: int


class PrefixCache:
    """Asked by the intake, changed by the loop: the two are threads."""

    def __init__(self, bytes_max: int, size_of: Callable[[int], int], trims: bool) -> None:
        self.bytes_max, self._size_of, self._trims = bytes_max, size_of, trims
        self._lock = threading.Lock()
        self._entries: OrderedDict[int, Entry] = OrderedDict()  # least recently used first
        self._numbers = 0
        self._grown = False  # since room was last made
        self.size = 0

    def find(self, scope: str, ids: list[int]) -> Hit | None:
        """The entry that saves most of reading these ids, of which the last must be read anew; it is kept for
        the asker until `settle`."""
        with self._lock:
            best = Hit(0, 0)
            wanted = array.array("I", ids[:-1])
            for number, entry in self._entries.items():
                if entry.scope == scope:
                    shared = _shared(entry.ids, wanted)
                    if shared > best.tokens and (self._trims or shared == len(entry.ids)):
                        best = Hit(number, shared)
            if best.tokens < TOKENS_MIN:
                return None
            self._entries.move_to_end(best.entry)
            self._entries[best.entry].pins += 1
            return best

    def settle(self, hit: Hit) -> bool:
        """Its row begins, or never will. False when the entry had to go in the meantime."""
        with self._lock:
            entry = self._entries.get(hit.entry)
            if entry is not None:
                entry.pins -= 1
            return entry is not None

    def add(self, scope: str, ids: list[int]) -> int | None:
        """A number for the caches of these ids, or None when they are not worth keeping."""
        size = self._size_of(len(ids))
        if len(ids) < TOKENS_MIN or size > self.bytes_max:
            return None
        with self._lock:
            self._numbers += 1
            self._entries[self._numbers] = Entry(scope, array.array("I", ids), size)
            self.size += size
            self._grown = True
            return self._numbers

    def make_room(self, free_bytes: int) -> list[int]:
        """Drops what no longer fits beside the rows, and what a longer entry holds as well."""
        with self._lock:
            dropped = [self._drop(number) for number in self._covered()]
            limit = min(self.bytes_max, free_bytes)
            for pinned in (False, True):
                for number, entry in list(self._entries.items()):
                    if self.size <= limit:
                        return dropped
                    if bool(entry.pins) == pinned:
                        dropped.append(self._drop(number))
            return dropped

    def clear(self) -> None:
        """The stages hold nothing of it any more."""
        with self._lock:
            self._entries.clear()
            self.size = 0

    def _covered(self) -> list[int]:
        """Of the newest entry: those it goes on from. Caches that cannot be cut short cover nothing."""
        grown, self._grown = self._grown, False
        if not grown or not self._trims or not self._entries:
            return []
        newest = self._entries[max(self._entries)]
        return [
            number
            for number, entry in self._entries.items()
            if entry is not newest
            and not entry.pins
            and entry.scope == newest.scope
            and _shared(entry.ids, newest.ids) == len(entry.ids)
        ]

    def _drop(self, number: int) -> int:
        self.size -= self._entries.pop(number).size
        return number


def _shared(left: array.array, right: array.array) -> int:
    """How many of the first ids are the same."""
    low, high = 0, min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    while low < high:  # the longest equal beginning, by halves: comparing slices is what Python does fast
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
