"""A stage: a run of a model's layers, with the embedding when it is the first and norm and head when it
is the last. Any mlx-lm architecture is cut the same way: the list of layers keeps its length, and
layers held elsewhere become stubs that pass their input on, so that everything a model derives from a
layer's index stays true.

The model is still called with its full list of caches. The entry of a layer held elsewhere is an alias
of a local cache of the same kind, because models take their attention masks from the caches of fixed
layers.
"""

from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.models.cache import CacheList, make_prompt_cache


class CannotCut(Exception):
    """Why a model cannot be split where it was asked to be."""


class Stage:
    def __init__(self, model: nn.Module, layers: tuple[int, int] | None = None) -> None:
        self._model = model
        held = _layer_list(model)
        start, end = layers or (0, len(held))
        if not 0 <= start < end <= len(held):
            raise CannotCut(f"layers {start} to {end} do not exist in a model of {len(held)}")
        self.first, self.last = start == 0, end == len(held)
        self.layers: list[nn.Module] = held[start:end]
        self._edge: dict[str, mx.array] = {}  # what enters the first layer held and what leaves the last
        full = make_prompt_cache(model)
        places = _cache_places(held, len(full))
        self._kinds = [_kind(cache) for cache in full]
        self._local = [place for place in places[start:end] if place is not None]
        if not (self.first and self.last):
            for index, layer in enumerate(held):
                if not start <= index < end:
                    _make_stub(layer)
            if not self.first:
                _watch(held[start], self._edge, entering=True)
            if not self.last:
                _watch(held[end - 1], self._edge, leaving=True)

    def new_caches(self) -> list[Any]:
        """Empty caches of the layers held, for one row."""
        full = make_prompt_cache(self._model)
        return [full[place] for place in self._local]

    def __call__(self, entering: mx.array, caches: list[Any]) -> mx.array:
        """Token ids (rows, tokens) enter the first stage and hidden states (rows, tokens, width) any
        other; logits leave the last stage and hidden states any other."""
        if self.first and self.last:
            return self._model(entering, cache=caches)
        if not self.first:
            self._edge["in"] = entering
            entering = mx.zeros(entering.shape[:2], mx.int32)
        out = self._model(entering, cache=self._full(caches))
        return out if self.last else self._edge.pop("out")

    def parameter_groups(self) -> list[list[mx.array]]:
        """The arrays that this stage needs, a layer at a time, embedding and head before the layers.
        A stage in the middle needs neither; which of the two a module outside the layers belongs to cannot
        be told in general (it may be both), so the first and the last stage hold all of them."""
        groups = [_arrays(layer) for layer in self.layers]
        inside = {id(array) for group in groups for array in group}
        outside = [array for array in _arrays(self._model) if id(array) not in inside]
        return [outside, *groups] if self.first or self.last else groups

    def _full(self, caches: list[Any]) -> list[Any]:
        full: list[Any] = [None] * len(self._kinds)
        alike: dict[Any, Any] = {}
        for place, cache in zip(self._local, caches):
            full[place] = cache
            alike.setdefault(self._kinds[place], cache)
        spare: list[Any] | None = None
        for place, kind in enumerate(self._kinds):
            if full[place] is None:
                full[place] = alike.get(kind)
            if full[place] is None:
                spare = spare or make_prompt_cache(self._model)
                full[place] = spare[place]
        return full


def _arrays(module: nn.Module) -> list[mx.array]:
    return list(dict(tree_flatten(module.parameters())).values())


def _layer_list(model: nn.Module) -> list[nn.Module]:
    """The list that `model.layers` is, or else the longest list of modules."""
    wanted: Any = getattr(model, "layers", None)
    longest: list[nn.Module] = []
    for _, module in [("", model), *model.named_modules()]:
        for value in module.values():
            if isinstance(value, list) and value and all(isinstance(entry, nn.Module) for entry in value):
                if value is wanted:
                    return value
                if len(value) > len(longest):
                    longest = value
    if not longest:
        raise CannotCut("it has no list of layers")
    return longest


def _cache_places(layers: list[nn.Module], caches: int) -> list[int | None]:
    """Which cache belongs to which layer. Hybrids such as nemotron_h keep caches for some layers only."""
    if caches == len(layers):
        return list(range(caches))
    places: list[int | None] = []
    count = 0
    for layer in layers:
        has = getattr(layer, "block_type", None) in ("M", "*")
        places.append(count if has else None)
        count += has
    if count != caches:
        raise CannotCut(f"it has {len(layers)} layers but {caches} caches, so layers share caches")
    return places


def _kind(cache: Any) -> Any:
    if isinstance(cache, CacheList):
        return tuple(_kind(inner) for inner in cache.caches)
    return type(cache).__name__, getattr(cache, "max_size", None)


def _make_stub(layer: nn.Module) -> None:
    """Empties a layer but keeps its plain attributes: models read some of them in their loops."""
    for name in list(layer.keys()):
        if isinstance(layer[name], (mx.array, nn.Module, list, dict, tuple)):
            del layer[name]
    kind = type(layer)
    layer.__class__ = type(f"{kind.__name__}Elsewhere", (kind,), {"__call__": lambda self, x, *_, **__: x})


def _watch(layer: nn.Module, edge: dict[str, mx.array], entering: bool = False, leaving: bool = False) -> None:
    kind = type(layer)

    def call(self: nn.Module, x: mx.array, *rest: Any, **named: Any) -> mx.array:
        out = kind.__call__(self, edge.pop("in") if entering else x, *rest, **named)
        if leaving:
            edge["out"] = out
        return out

    layer.__class__ = type(f"{kind.__name__}Edge", (kind,), {"__call__": call})
