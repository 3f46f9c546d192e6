"""Expert parallel: every rank has some of the experts of each layer and the rest of the layer whole. Works
for any model built on mlx-lm's SwitchGLU or SwitchMLP.

Two forms give the same result. The plain one runs every slot on every rank, with the slots of experts held
elsewhere put to a local one and then zeroed: no wait, but no work saved. The compact one runs only its own
slots, for which the processor must know them: the device waits once for every layer. It pays where the slots
are many (prompts), and where waiting costs nothing (on a CPU)."""

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
    def __init__(self, inner: nn.Module, start: int, end: int, group: Group) -> None:
        super().__init__()
        self.inner = inner
        self._start, self._end, self._group = start, end, group

    def __call__(self, x: mx.array, indices: mx.array) -> mx.array:
        return mx.distributed.all_sum(self.own(x, indices), group=self._group)

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


def share_experts(layer: nn.Module, group: Group, wanted: list[float], parts: Parts) -> int:
    """Cuts the experts inside one layer; returns how many banks of them it found."""
    banks = sum(isinstance(module, (SwitchGLU, SwitchMLP)) for module in layer.modules())
    found = 0
    for owner in list(layer.modules()):
        for name, child in list(owner.children().items()):
            if isinstance(child, (SwitchGLU, SwitchMLP)):
                owner[name] = _part(child, group, wanted, parts)
                found += 1
    if found != banks:
        raise CannotShare(f"only {found} of its {banks} banks of experts in a layer can be shared")
    return found


def _part(bank: nn.Module, group: Group, wanted: list[float], parts: Parts) -> ExpertPart:
    linears: list[Any] = [m for m in bank.modules() if isinstance(m, (SwitchLinear, QuantizedSwitchLinear))]
    count = linears[0].num_experts
    if count < len(wanted):
        raise CannotShare(f"its {count} experts can be shared by at most {count} ranks, not {len(wanted)}")
    cuts = cut(count, wanted)
    start, end = cuts[group.rank()], cuts[group.rank() + 1]
    for linear in linears:
        keep_experts(linear, start, end, parts)
    return ExpertPart(bank, start, end, group)
