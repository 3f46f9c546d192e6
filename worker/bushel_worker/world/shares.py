"""How much of a thing each rank of a world takes: pure arithmetic, no tensors."""

from collections.abc import Sequence

Cuts = list[int]  # rank r has cuts[r] .. cuts[r + 1]


class CannotShare(Exception):
    """Why a model cannot be shared among so many ranks, and what would work."""


def fractions(shares: Sequence[float], size: int) -> list[float]:
    """What each rank should hold of the whole; equal when nothing is said."""
    if not shares:
        return [1 / size] * size
    if len(shares) != size:
        raise CannotShare(f"{len(shares)} shares were given for {size} ranks")
    return [share / sum(shares) for share in shares]


def uneven(parts: Sequence[float]) -> bool:
    return max(parts) - min(parts) > 1e-6


def cut(count: int, parts: Sequence[float], unit: int = 1) -> Cuts:
    """Cuts `count` things (in whole units; the last rank has the remainder) as near to the parts as can be,
    and gives nobody nothing."""
    units, size = -(-count // unit), len(parts)
    if units < size:
        raise CannotShare(f"{count} in units of {unit} cannot be shared by {size} ranks")
    total = sum(parts)
    exact = [units * part / total for part in parts]
    given = [max(1, int(amount)) for amount in exact]
    while sum(given) < units:
        given[max(range(size), key=lambda rank: exact[rank] - given[rank])] += 1
    while sum(given) > units:
        given[max((r for r in range(size) if given[r] > 1), key=lambda r: given[r] - exact[r])] -= 1
    cuts = [0]
    for amount in given:
        cuts.append(min(cuts[-1] + amount * unit, count))
    return cuts


def make_up(parts: Sequence[float], first: Sequence[float], first_weight: float, rest_weight: float) -> list[float]:
    """The parts of the rest that bring everyone to its part of the whole when the first piece could not be
    cut evenly (`first` says how it was): 3 heads over two ranks are 2 and 1, so the rank with one head
    takes more of the MLP. Nobody gets less than a little."""
    whole = first_weight + rest_weight
    wanted = [(part * whole - had * first_weight) / rest_weight for part, had in zip(parts, first)]
    kept = [max(part, 0.01) for part in wanted]
    return [part / sum(kept) for part in kept]


def sizes(cuts: Cuts) -> list[int]:
    return [end - start for start, end in zip(cuts, cuts[1:])]
