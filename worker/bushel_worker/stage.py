"""A stage: a run of a model's layers, with the embedding when it is the first and norm and head when it
is the last. Any mlx-lm architecture is cut the same way: the list of layers keeps its length, and
layers held elsewhere become stubs that pass their input on, so that everything a model derives from a
layer's index stays true.

The model is still called with its full list of caches. The entry of a layer held elsewhere is an alias
of a local cache of the same kind, because models take their attention masks from the caches of fixed
layers. Where the stage holds no cache of a kind, a shadow stands in that only counts tokens: some models
take every layer's position from the cache of one.

Which of the modules outside the layers a stage needs is found by trying: the model is called once,
lazily, and what is called only before the first layer held is of no use to a later stage, nor is what is called
only after the last layer held to an earlier one. Nothing is removed on that account: a module that was
judged wrongly is read from its file when it is first used.
"""

from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.models.cache import CacheList, KVCache, RotatingKVCache, make_prompt_cache


# Architectures whose later layers read more than hidden states, which nothing in their shapes gives away.
UNCUTTABLE = {
    "gemma3n": "every layer reads the token ids, and later layers the caches of earlier ones",
    "gemma4": "every layer may read the token ids, and later layers the caches of earlier ones",
    "gemma4_text": "every layer may read the token ids, and later layers the caches of earlier ones",
    "deepseek_v41": "its layers share compressed keys",
    "iquestloopcoder": "all layers run more than once for a token",
}


TRIED_TOKENS = 3  # in the one lazy call: more than one, so that what belongs to tokens is known by its shape


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
        self.span, self.count = (start, end), len(held)
        self.layers: list[nn.Module] = held[start:end]
        self._edge: dict[str, Any] = {}  # what enters the first layer held and what leaves the last
        full = make_prompt_cache(model)
        self._kinds = [_kind(cache) for cache in full]
        self._local = list(range(len(full)))
        self._shadows: list[int] = []
        if not (self.first and self.last):
            reason = UNCUTTABLE.get(_architecture(model))
            if reason is not None:
                raise CannotCut(f"{_architecture(model)} cannot be cut into stages: {reason}")
            self._local = [place for place in _cache_places(held, len(full))[start:end] if place is not None]
            self._shadows = self._missing(full)
            for index, layer in enumerate(held):
                if not start <= index < end:
                    _make_stub(layer)
            if not self.first:
                _watch(held[start], self._edge, entering=True)
            if not self.last:
                _watch(held[end - 1], self._edge, leaving=True)
        self._outside, self.entering = self._try_out(held)

    def new_caches(self) -> list[Any]:
        """Empty caches of the layers held, for one row."""
        full = make_prompt_cache(self._model)
        return [full[place] for place in (*self._local, *self._shadows)]

    def __call__(self, entering: mx.array, caches: list[Any]) -> mx.array:
        """Token ids (rows, tokens) enter the first stage and hidden states (rows, tokens, width) any
        other; logits leave the last stage and hidden states any other."""
        if self.first and self.last:
            return self._model(entering, cache=caches)
        if not self.first:
            self._edge["in"] = entering
            entering = mx.zeros(entering.shape[:2], mx.int32)
        out = self._model(entering, cache=self._full(caches))
        for shadow in caches[len(self._local) :]:
            nothing = mx.zeros((entering.shape[0], 1, entering.shape[1], 1))
            shadow.update_and_fetch(nothing, nothing)
        return out if self.last else self._edge.pop("out")

    def parameter_groups(self) -> list[list[mx.array]]:
        """The arrays that this stage needs, a layer at a time, those outside the layers first."""
        return [self._outside, *(_arrays(layer) for layer in self.layers)]

    def _try_out(self, held: list[nn.Module]) -> tuple[list[mx.array], tuple[tuple[int, ...], mx.Dtype]]:
        """The arrays outside the layers that matter here, and the shape and type of what enters."""
        inside = {id(array) for layer in held for array in _arrays(layer)}
        outside = {id(array): array for array in _arrays(self._model) if id(array) not in inside}
        ids = mx.zeros((1, TRIED_TOKENS), mx.int32)
        if self.first and self.last:
            return list(outside.values()), (ids.shape, ids.dtype)
        within = {id(module) for layer in held for module in layer.modules()}
        watched = [module for module in self._model.modules() if id(module) not in within and _own_arrays(module)]
        used: dict[int, set[str]] = {}
        restore = [(module, type(module)) for module in watched]
        for module in watched:
            _note_use(module, self._edge, used)
        self._edge.update(phase="before")
        try:
            self._model(ids, cache=self._full(self.new_caches()))
        except Exception as error:  # whatever its own code meets where a layer should be
            what = str(error).splitlines()[0][:120] if str(error) else ""
            raise CannotCut(f"{_architecture(self._model)} cannot be cut: {type(error).__name__} {what}") from None
        finally:
            for module, kind in restore:
                module.__class__ = kind
        self._edge.pop("phase")
        useful = {"within"} | ({"before"} if self.first else set()) | ({"after"} if self.last else set())
        for module in watched:
            phases = used.get(id(module))
            if phases is not None and not phases & useful:
                for array in _own_arrays(module):
                    outside.pop(id(array), None)
        seen, out = self._edge.pop("seen", None), self._edge.pop("out", None)
        if self._edge.pop("more", False):
            name = _architecture(self._model)
            raise CannotCut(f"{name} cannot be cut into stages: its layers read more than hidden states")
        for passed in (seen, out):
            if passed is not None and not (isinstance(passed, mx.array) and passed.ndim == 3):
                name = _architecture(self._model)
                raise CannotCut(f"{name} cannot be cut into stages: its layers hand on more than hidden states")
        entering = (ids.shape, ids.dtype) if seen is None else (tuple(seen.shape), seen.dtype)
        return list(outside.values()), entering

    def _missing(self, full: list[Any]) -> list[int]:
        """A place for each kind of cache that counts tokens and that no layer held here has."""
        here = {self._kinds[place] for place in self._local}
        places = {}
        for place, kind in enumerate(self._kinds):
            if kind not in here and isinstance(full[place], (KVCache, RotatingKVCache)):
                places.setdefault(kind, place)
        return list(places.values())

    def _full(self, caches: list[Any]) -> list[Any]:
        full: list[Any] = [None] * len(self._kinds)
        alike: dict[Any, Any] = {}
        for place, cache in zip((*self._local, *self._shadows), caches):
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


def _architecture(model: nn.Module) -> str:
    return type(model).__module__.rpartition(".")[2]


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
        raise CannotCut(f"it cannot be cut: it has {len(layers)} layers but {caches} caches, so layers share caches")
    return places


def _kind(cache: Any) -> Any:
    if isinstance(cache, CacheList):
        return tuple(_kind(inner) for inner in cache.caches)
    return type(cache).__name__, getattr(cache, "max_size", None)


def _make_stub(layer: nn.Module) -> None:
    """Takes a layer's arrays but keeps its plain attributes: models read some of them in their loops."""
    for module in layer.modules():
        for name in list(module.keys()):
            if isinstance(module[name], mx.array):
                del module[name]
    kind = type(layer)

    def call(self: nn.Module, *rest: Any, **named: Any) -> Any:
        return rest[0] if rest else next(iter(named.values()))

    layer.__class__ = type(f"{kind.__name__}Elsewhere", (kind,), {"__call__": call})


def _watch(layer: nn.Module, edge: dict[str, Any], entering: bool = False, leaving: bool = False) -> None:
    kind = type(layer)

    def call(self: nn.Module, *rest: Any, **named: Any) -> Any:
        # The hidden states come first, with or without a name.
        name = None if rest else next(iter(named))
        x = rest[0] if rest else named[name]
        if "phase" in edge:
            # Such as the embedded ids, again: a later stage does not have them.
            others = [*rest[1:], *(value for key, value in named.items() if key != name)]
            edge["more"] = edge.get("more", False) or any(map(_of_tokens, others))
        if entering:
            if "phase" in edge:
                edge.update(phase="within", seen=x)
            x = edge.pop("in", x)
        out = kind.__call__(self, x, *rest[1:], **named) if rest else kind.__call__(self, **{**named, name: x})
        if leaving:
            edge["out"] = out
            if "phase" in edge:
                edge["phase"] = "after"
        return out

    layer.__class__ = type(f"{kind.__name__}Edge", (kind,), {"__call__": call})


def _of_tokens(value: Any) -> bool:
    """Whether it is an array with a line of numbers for every token (masks have two dimensions, or four)."""
    return isinstance(value, mx.array) and value.ndim == 3 and tuple(value.shape[:2]) == (1, TRIED_TOKENS)


def _own_arrays(module: nn.Module) -> list[mx.array]:
    """Of a module without modules inside; others use what they hold themselves in ways nobody can watch."""
    if any(isinstance(value, (nn.Module, list, dict)) for value in module.values()):
        return []
    return [value for value in module.values() if isinstance(value, mx.array)]


def _note_use(module: nn.Module, edge: dict[str, Any], used: dict[int, set[str]]) -> None:
    kind = type(module)

    def noting(method: Any) -> Any:
        def call(self: nn.Module, *rest: Any, **named: Any) -> Any:
            used.setdefault(id(self), set()).add(edge["phase"])
            return method(self, *rest, **named)

        return call

    methods = {name: noting(getattr(kind, name)) for name in ("__call__", "as_linear") if hasattr(kind, name)}
    module.__class__ = type(kind.__name__, (kind,), methods)
