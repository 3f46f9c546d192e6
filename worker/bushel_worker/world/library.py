"""mlx-lm's own `shard`, for architectures that bring one, with its conditions looked at beforehand: it
divides head counts without a remainder being noticed, and fails in the middle where a matrix does not
divide. So it is first tried on an empty twin of the model."""

import copy
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten

from .shares import CannotShare
from .slices import Group

RANKS_MAX = 16  # tried, to say which counts would work


class PretendedGroup:
    """A group of so many ranks, of which there are only the numbers."""

    def __init__(self, size: int, rank: int = 0) -> None:
        self._size, self._rank = size, rank

    def size(self) -> int:
        return self._size

    def rank(self) -> int:
        return self._rank


def has_shard(model: nn.Module) -> bool:
    return callable(getattr(model, "shard", None))


def shard_evenly(model: Any, group: Group) -> None:
    size = group.size()
    if not _divides(model, size):
        working = [str(count) for count in range(2, RANKS_MAX + 1) if _divides(model, count)]
        instead = f"{', '.join(working)} ranks would work" if working else "no number of ranks would work"
        raise CannotShare(f"its heads and widths do not divide by {size}; {instead}")
    model.shard(group)


def _divides(model: nn.Module, size: int) -> bool:
    twin: Any = _twin(model)
    before = _counts(twin)
    try:
        twin.shard(PretendedGroup(size))
    except (ValueError, RuntimeError, AssertionError, ZeroDivisionError):
        return False
    after = _counts(twin)
    changed = [(count, after[name]) for name, count in before.items() if after.get(name, count) != count]
    return all(count == size * part for count, part in changed)


def _counts(model: nn.Module) -> dict[tuple[str, str], int]:
    """The whole numbers that modules keep: counts of heads and groups, which `shard` divides."""
    return {
        (path, name): value
        for path, module in model.named_modules()
        for name, value in vars(module).items()
        if isinstance(value, int) and not isinstance(value, bool)
    }


def _twin(model: nn.Module) -> nn.Module:
    """The same modules with arrays of the same shapes that nobody will ever fill. (Not the model's own: some
    `shard` divides a bias in place.)"""
    arrays = [array for _, array in tree_flatten(model.parameters())]
    return copy.deepcopy(model, {id(array): mx.zeros(array.shape, array.dtype) for array in arrays})
