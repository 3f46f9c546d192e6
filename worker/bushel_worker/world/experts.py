"""Expert parallel: every rank has some of the experts of each layer and the rest of the layer whole. Works
for any model built on mlx-lm's SwitchGLU or SwitchMLP.

Two forms give the same result. The plain one runs every slot on every rank, with the slots of experts held
elsewhere put to a local one and then zeroed: no wait, but no work saved. The compact one runs only its own
slots, for which the processor must know them: the device waits once for every layer. It pays where the slots
are many (prompts), and where waiting costs nothing (on a CPU).

The ranks' results are added slot by slot, which is right for any model. Where the block around the experts does
nothing but weigh and add the slots, the sum can as well be taken of what leaves the block: as many times less to
send as a token has slots. Whether that is so is not known from names but tried, with invented results."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_lm.models.switch_layers import QuantizedSwitchLinear, SwitchGLU, SwitchLinear, SwitchMLP

from .parts import Parts
from .shares import CannotShare, cut
from .slices import Group, keep_experts

# On a CPU the compact form was 1.2 to 2.2 times as fast from here on, and never much slower. On a GPU it has to make
# up for the wait; SwitchGLU itself thinks slots worth sorting from 64 on.
COMPACT_SLOTS_MIN = 16 if mx.default_device() == mx.cpu else 64


class ExpertPart(nn.Module):
    def __init__(self, inner: nn.Module, start: int, end: int, group: Group | None) -> None:
        """Without a group, somebody else adds up."""
        super().__init__()
        self.inner = inner
        self._start, self._end, self._group = start, end, group

    def __call__(self, x: mx.array, indices: mx.array) -> mx.array:
        own = self.own(x, indices)
        return own if self._group is None else mx.distributed.all_sum(own, group=self._group)

    def own(self, x: mx.array, indices: mx.array) -> mx.array:
        """What this rank's experts give; nothing where a slot is another's."""
        return self._compact(x, indices) if indices.size >= COMPACT_SLOTS_MIN else self._plain(x, indices)

    def _plain(self, x: mx.array, indices: mx.array) -> mx.array:
        mine = (indices >= self._start) & (indices < self._end)
        y = self.inner(x, mx.where(mine, indices - self._start, 0))
        return mx.where(mine[..., None], y, 0)

    def _compact(self, x: mx.array, indices: mx.array) -> mx.array:
        slots, width = indices.shape[-1], x.shape[-1]
        experts = np.array(indices).reshape(-1)
        mine = np.nonzero((experts >= self._start) & (experts < self._end))[0]
        # Where nothing is this rank's, one slot is still written down (never run) to know the result's type.
        kept = mine if mine.size else np.zeros(1, mine.dtype)
        local = np.where(mine.size, experts[kept] - self._start, 0).astype(np.uint32)
        y = self.inner(x.reshape(-1, width)[mx.array(kept // slots)], mx.array(local)[:, None])[:, 0]
        out = mx.zeros((experts.size, y.shape[-1]), y.dtype)
        if mine.size:
            out[mx.array(mine)] = y
        return out.reshape(*indices.shape, y.shape[-1])


def has_experts(module: nn.Module) -> bool:
    return any(isinstance(found, (SwitchGLU, SwitchMLP)) for found in module.modules())


def share_experts(
    layer: nn.Module, group: Group, wanted: list[float], parts: Parts, by_block: bool = True
) -> int:
    """Cuts the experts inside one layer; returns how many banks of them it found. `by_block`: results may be
    added behind the block."""
    banks = sum(isinstance(module, (SwitchGLU, SwitchMLP)) for module in layer.modules())
    found = 0
    for owner in list(layer.modules()):
        for name, child in list(owner.children().items()):
            if isinstance(child, (SwitchGLU, SwitchMLP)):
                whole = by_block and only_weighs(owner, name)
                owner[name] = _part(child, group, wanted, parts, adds=not whole)
                if whole:
                    _add_behind(owner, group)
                found += 1
    if found != banks:
        raise CannotShare(f"only {found} of its {banks} banks of experts in a layer can be shared")
    return found


class _Invented(nn.Module):
    """Experts whose results are given, so many times over."""

    def __init__(self, times: float) -> None:
        super().__init__()
        self._times = times

    def __call__(self, x: mx.array, indices: mx.array) -> mx.array:
        return self._times * mx.random.normal((*indices.shape, x.shape[-1]), key=mx.random.key(3))


def only_weighs(block: Any, name: str) -> bool:
    """Whether what leaves a block is a weighted sum of its experts' results and nothing else: nothing for
    nothing, and twice as much for twice as much."""
    bank = block[name]
    width = (bank.up_proj if isinstance(bank, SwitchGLU) else bank.fc1).input_dims
    x = mx.random.normal((1, 3, width), key=mx.random.key(5))
    leaving = []
    try:
        for times in (0, 1, 2):
            block[name] = _Invented(times)
            leaving.append(block(x))
        nothing, once, twice = leaving
        if nothing.shape != x.shape or once.shape != x.shape:
            return False
        error = mx.max(mx.abs(twice - 2 * once)) / mx.maximum(mx.max(mx.abs(twice)), 1e-6)
        return bool(mx.all(nothing == 0)) and bool(mx.any(once != 0)) and float(error) < 0.02
    except Exception:  # a block that wants something else: its experts are added slot by slot
        return False
    finally:
        block[name] = bank


def _add_behind(block: Any, group: Group) -> None:
    kind = type(block)

    def call(self: Any, *given: Any, **named: Any) -> mx.array:
        return mx.distributed.all_sum(kind.__call__(self, *given, **named), group=group)

    block.__class__ = type(kind.__name__, (kind,), {"__call__": call})


def _linears(bank: nn.Module) -> list[Any]:
    return [module for module in bank.modules() if isinstance(module, (SwitchLinear, QuantizedSwitchLinear))]


def _part(bank: nn.Module, group: Group, wanted: list[float], parts: Parts, adds: bool = True) -> ExpertPart:
    linears = _linears(bank)
    count = linears[0].num_experts
    if count < len(wanted):
        raise CannotShare(f"its {count} experts can be shared by at most {count} ranks, not {len(wanted)}")
    cuts = cut(count, wanted)
    start, end = cuts[group.rank()], cuts[group.rank() + 1]
    for linear in linears:
        keep_experts(linear, start, end, parts)
    return ExpertPart(bank, start, end, group if adds else None)
