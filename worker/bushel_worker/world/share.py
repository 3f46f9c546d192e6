"""A rank's share of a model: what is cut, how, and read so that never more than a layer lies in memory beyond
the share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_map_with_path
from mlx_lm.utils import dequantize_model

from ..frames import Load
from ..stage import Stage
from .experts import has_experts, share_experts
from .library import has_shard, shard_evenly
from .parts import Parts
from .shares import CannotShare, fractions, uneven
from .slices import Group
from .tensor import llama_shaped, share_layer
from .vocabulary import share_vocabulary

Told = Callable[[float, float], None]


@dataclass(frozen=True)
class Precision:
    """The type of the weights (None: their own), and whether quantised ones are to be unpacked."""

    dtype: mx.Dtype | None
    unpacked: bool

    def apply(self, model: Any, module: nn.Module, prefix: str = "") -> None:
        """To all that is in a module of a model, whose name in the model is the prefix."""
        if self.unpacked:
            dequantize_model(module)
        cast = tree_map_with_path(lambda name, array: self.cast(model, prefix + name, array), module.parameters())
        module.update(cast)

    def cast(self, model: Any, name: str, array: mx.array) -> mx.array:
        if self.dtype is None or not mx.issubdtype(array.dtype, mx.floating):
            return array
        may_cast = getattr(model, "cast_predicate", None) if self.dtype != mx.float32 else None
        return array.astype(self.dtype) if may_cast is None or may_cast(name) else array


def share_stage(
    model: Any, load: Load, group: Group, parts: Parts, precision: Precision, told: Told
) -> tuple[Stage, int]:
    """Cuts a lazily opened model down to one rank's share of one stage, and reads it: the stage and its bytes.
    Raises CannotShare or CannotCut."""
    wanted = fractions(load.world.shares, load.world.size)
    share = _sharer(model, load.world.strategy, group, wanted, parts, precision)
    layers = list(model.layers)
    inside = {id(module) for layer in layers for module in layer.modules()}
    names = {id(module): f"{name}." for name, module in model.named_modules()}
    for module in share_vocabulary(model, (load.first, load.last), group, wanted, parts):
        parts.release(module)
        precision.apply(model, module)
    for path, module in [("", model), *model.named_modules()]:
        for name, array in list(module.items()) if id(module) not in inside else []:
            if isinstance(array, mx.array) and module.valid_parameter_filter(module, name, array):
                parts.release_array(array)
                module[name] = precision.cast(model, f"{path}.{name}", array)
    stage = Stage(model, None if load.stage_count == 1 else load.layers)

    whole = sum(_bytes(layer) for layer in stage.layers)
    outside = stage.parameter_groups()[0]
    total = sum(array.nbytes for array in outside) + whole * wanted[group.rank()]  # until the layers are cut
    mx.eval(outside)
    done = sum(array.nbytes for array in outside)
    for layer in stage.layers:
        told(done, max(total, done))
        share(layer)
        parts.release(layer)
        precision.apply(model, layer, names.get(id(layer), ""))
        mx.eval(layer.parameters())
        done += _bytes(layer)
        mx.clear_cache()
    told(done, done)
    return stage, done


def _sharer(
    model: Any, strategy: str, group: Group, wanted: list[float], parts: Parts, precision: Precision
) -> Callable[[nn.Module], Any]:
    """What is to be done to each layer. mlx-lm's own `shard` does it to all of them here, lazily."""
    name = getattr(getattr(model, "args", None), "model_type", type(model).__module__.rpartition(".")[2])
    if strategy == "expert":
        if not any(has_experts(layer) for layer in model.layers):
            raise CannotShare(f"{name} has no experts to share; use tensor or pipeline")
        return lambda layer: share_experts(layer, group, wanted, parts)
    if all(llama_shaped(layer) for layer in model.layers):
        return lambda layer: share_layer(layer, group, wanted, parts)
    if not has_shard(model):
        raise CannotShare(f"{name} cannot be cut by tensor: mlx-lm has no shard for it; use pipeline")
    if uneven(wanted):
        given = ", ".join(f"{part:.3f}" for part in wanted)
        raise CannotShare(f"{name} can be cut by tensor into equal shares only, not {given}")
    if precision.unpacked:
        dequantize_model(model)
    shard_evenly(model, group)
    return lambda layer: None


def _bytes(module: nn.Module) -> int:
    return sum(array.nbytes for _, array in tree_flatten(module.parameters()))
