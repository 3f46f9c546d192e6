"""Cuts layers that look like Llama's among the ranks of a world, evenly or not: whole KV heads with their
query heads, and the MLP at any column.

Heads are few, so attention can often not be cut as wanted; the MLP then makes up for it, and every rank has
its share of the layer. With fewer KV heads than ranks, ranks share a KV head: each has a copy."""

from typing import Any

import mlx.nn as nn
from mlx.utils import tree_flatten

from .parts import Parts
from .shares import CannotShare, cut, make_up, sizes
from .slices import (
    Group,
    SumOverRanks,
    in_size,
    input_unit,
    is_linear,
    keep_inputs,
    keep_outputs,
    out_size,
    weight_bytes,
)

COLUMNS = 16  # of the MLP, at a time: odd widths are slow to multiply
_PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj")
_MLP = ("gate_proj", "up_proj", "down_proj")


def llama_shaped(layer: nn.Module) -> bool:
    """By what it is made of, not by its name. Norms over one head's width are the same on every rank; norms
    over all heads are not."""
    attention, mlp = layer.get("self_attn"), layer.get("mlp")
    if not isinstance(attention, nn.Module) or not isinstance(mlp, nn.Module):
        return False
    if not all(is_linear(attention.get(name)) for name in _PROJECTIONS):
        return False
    if set(mlp.children()) - {"act", "activation"} != set(_MLP) or not all(is_linear(mlp[name]) for name in _MLP):
        return False
    heads, kv_heads = getattr(attention, "n_heads", None), getattr(attention, "n_kv_heads", None)
    if not isinstance(heads, int) or not isinstance(kv_heads, int) or heads % kv_heads:
        return False
    width = out_size(attention.q_proj) // heads
    sized = (width * heads, width * kv_heads, width * kv_heads, width * heads)
    outputs = [out_size(attention[name]) for name in _PROJECTIONS[:3]]
    found = (*outputs, in_size(attention.o_proj))
    for name, child in attention.items():
        if name in _PROJECTIONS:
            continue
        if not isinstance(child, nn.Module) or any(array.size > width for _, array in tree_flatten(child.parameters())):
            return False
    return sized == found


def share_layer(layer: nn.Module, group: Group, wanted: list[float], parts: Parts) -> None:
    attention, mlp = layer.self_attn, layer.mlp
    heads_bytes = weight_bytes(*(attention[name] for name in _PROJECTIONS))
    mlp_bytes = weight_bytes(*(mlp[name] for name in _MLP))
    taken = _share_attention(attention, group, wanted, parts)
    _share_mlp(mlp, group, make_up(wanted, taken, heads_bytes, mlp_bytes), parts)


def _share_attention(attention: Any, group: Group, wanted: list[float], parts: Parts) -> list[float]:
    """Returns which part of it each rank has taken."""
    heads, kv_heads, rank = attention.n_heads, attention.n_kv_heads, group.rank()
    width, repeats = out_size(attention.q_proj) // heads, heads // kv_heads
    unit = input_unit(attention.o_proj)
    if kv_heads >= len(wanted) and (width * repeats) % unit == 0:
        cuts = cut(kv_heads, wanted)
        queries = [edge * repeats for edge in cuts]
        kept = list(range(cuts[rank], cuts[rank + 1]))
    else:
        if hasattr(attention, "repeats"):
            raise CannotShare(f"its {kv_heads} KV heads can be shared by at most {kv_heads} ranks")
        queries = cut(heads, wanted, max(1, unit // width) if width < unit else 1)
        kept = [query // repeats for query in range(queries[rank], queries[rank + 1])]
        kept = _without_repeats(kept)
    rows = [(queries[rank] * width, queries[rank + 1] * width)]
    kv_rows = [(head * width, (head + 1) * width) for head in kept]
    keep_outputs(attention.q_proj, rows, parts)
    keep_outputs(attention.k_proj, _joined(kv_rows), parts)
    keep_outputs(attention.v_proj, _joined(kv_rows), parts)
    keep_inputs(attention.o_proj, rows, parts)
    attention.o_proj = SumOverRanks(attention.o_proj, group)
    attention.n_heads, attention.n_kv_heads = queries[rank + 1] - queries[rank], len(kept)
    return [size / heads for size in sizes(queries)]


def _without_repeats(kept: list[int]) -> list[int]:
    """One KV head for each query head is always right; where each serves as many, one copy is enough."""
    single = sorted(set(kept))
    return single if len({kept.count(head) for head in single}) == 1 else kept


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined = [ranges[0]]
    for start, end in ranges[1:]:
        if start == joined[-1][1]:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _share_mlp(mlp: Any, group: Group, wanted: list[float], parts: Parts) -> None:
    columns, unit = in_size(mlp.down_proj), input_unit(mlp.down_proj)
    if unit == 1 and columns >= COLUMNS * 4 * len(wanted):
        unit = COLUMNS
    cuts = cut(columns, wanted, unit)
    mine = [(cuts[group.rank()], cuts[group.rank() + 1])]
    keep_outputs(mlp.gate_proj, mine, parts)
    keep_outputs(mlp.up_proj, mine, parts)
    keep_inputs(mlp.down_proj, mine, parts)
    mlp.down_proj = SumOverRanks(mlp.down_proj, group)

