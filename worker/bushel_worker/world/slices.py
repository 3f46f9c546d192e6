"""Modules cut along one dimension, for all the kinds of linear layers that mlx-lm has."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn

from .parts import Parts, Ranges
from .shares import CannotShare

Group = mx.distributed.Group


class SumOverRanks(nn.Module):
    """A linear layer whose input is cut: every rank has its columns, and the results are added up. The bias
    belongs to the sum, so it is added once, after."""

    def __init__(self, inner: nn.Module, group: Group) -> None:
        super().__init__()
        self.inner = inner
        if "bias" in inner:
            self.bias = inner.pop("bias")
        self._group = group

    def __call__(self, x: mx.array) -> mx.array:
        y = mx.distributed.all_sum(self.inner(x), group=self._group)
        return y + self.bias if "bias" in self else y


def keep_outputs(module: nn.Module, ranges: Ranges, parts: Parts) -> None:
    """Rows of the matrix: of the weight, of what belongs to its quantisation, and of the bias. Stacks of
    experts have one dimension more in front."""
    for name in ("weight", "scales", "biases"):
        if isinstance(module.get(name), mx.array):
            module[name] = parts.take(module[name], -2, ranges)
    if isinstance(module.get("bias"), mx.array):
        module.bias = parts.take(module.bias, -1, ranges)


def keep_inputs(module: nn.Module, ranges: Ranges, parts: Parts) -> None:
    """Columns of the matrix. Quantised ones lie packed, and can be cut between groups only."""
    unit = input_unit(module)
    if any(start % unit or end % unit for start, end in ranges):
        raise CannotShare(f"a matrix quantised in groups of {unit} cannot be cut at {ranges}")
    packed = module.bits if "scales" in module else 0
    for name in ("weight", "scales", "biases"):
        if isinstance(module.get(name), mx.array):
            if not packed:
                scaled = ranges
            elif name == "weight":
                scaled = [(a * packed // 32, b * packed // 32) for a, b in ranges]
            else:
                scaled = [(a // unit, b // unit) for a, b in ranges]
            module[name] = parts.take(module[name], -1, scaled)


def keep_experts(module: nn.Module, start: int, end: int, parts: Parts) -> None:
    for name in ("weight", "scales", "biases", "bias", "global_scale"):
        if isinstance(module.get(name), mx.array):
            module[name] = parts.take(module[name], 0, [(start, end)])


def input_unit(module: nn.Module) -> int:
    return module.group_size if "scales" in module else 1


def is_linear(module: Any) -> bool:
    return type(module) in (nn.Linear, nn.QuantizedLinear)


def out_size(module: nn.Module) -> int:
    return module["weight"].shape[-2]


def in_size(module: nn.Module) -> int:
    width = module["weight"].shape[-1]
    return width * 32 // module.bits if "scales" in module else width


def weight_bytes(*modules: nn.Module) -> int:
    return sum(a.nbytes for m in modules for a in m.values() if isinstance(a, mx.array))
