"""What to do with each row after a stage was lost and the ring is whole again. Pure.

Every stage has told how many tokens of a row its caches hold and of how many it kept what it sent on. A row is
as long as the head knows it; whatever a stage held beyond that was a step whose token never came back, and has
been trimmed."""

from dataclasses import dataclass
from typing import NamedTuple


class Held(NamedTuple):
    """Of one row at one stage."""

    tokens: int
    kept: int


@dataclass(frozen=True)
class Whole:
    """Every stage holds the row."""


@dataclass(frozen=True)
class Refill:
    """The head's own layers compute again, from the ids."""

    start: int


@dataclass(frozen=True)
class Replay:
    """Stages `first` to `last` compute again what the stage before them kept."""

    first: int
    last: int
    start: int


@dataclass(frozen=True)
class Anew:
    """The row is prefilled again everywhere."""


Remedy = Whole | Refill | Replay | Anew


def remedy(tokens: int, stages: list[Held]) -> Remedy:
    missing = [index for index, held in enumerate(stages) if held.tokens < tokens]
    if not missing:
        return Whole()
    first, last = missing[0], missing[-1]
    starts = {stages[index].tokens for index in missing}
    if missing != list(range(first, last + 1)) or len(starts) != 1:
        return Anew()
    (start,) = starts
    if first == 0:
        return Refill(start) if last == 0 else Anew()
    return Replay(first, last, start) if stages[first - 1].kept >= tokens else Anew()
