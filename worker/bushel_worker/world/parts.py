"""Reads a part of a weight. mlx-lm's lazy arrays are read whole before they are sliced; where a parameter is
a tensor of a file exactly as it lies there (no `sanitize` has touched it), only the bytes of the part are
read. Everything else is sliced lazily, and costs the whole tensor for the moment in which it is evaluated."""

import json
import mmap
from pathlib import Path
from typing import Any, NamedTuple

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten
from mlx_lm.utils import _get_classes

Ranges = list[tuple[int, int]]  # along one axis, in order


class _Tensor(NamedTuple):
    file: Path
    offset: int
    shape: tuple[int, ...]
    kind: np.dtype[Any]
    length: int


# As mx.load knows them; bfloat16 and the small floats have no numpy type and travel as integers.
_KINDS = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "F16": "<f2", "BF16": "<u2", "U32": "<u4",
    "I32": "<i4", "F32": "<f4", "U64": "<u8", "I64": "<i8", "F8_E4M3": "u1",
}  # fmt: skip


class Parts:
    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._verbatim: dict[int, tuple[mx.array, _Tensor]] = {}  # the array is kept, so that its id stays its own
        self.bytes_read = 0

    def model_classes(self, config: dict[str, Any]) -> tuple[Any, Any]:
        """For mlx-lm's `load_model`: the model's classes, watching which tensors come through `sanitize`
        untouched. Identity of the array objects tells, whatever a model does to its weights."""
        model_class, args_class = _get_classes(config)
        parts = self

        def init(model: nn.Module, args: Any) -> None:
            model_class.__init__(model, args)

        def sanitize(model: nn.Module, weights: dict[str, mx.array]) -> dict[str, mx.array]:
            parts._know(weights)
            return model_class.sanitize(model, weights) if hasattr(model_class, "sanitize") else weights

        watched = type(model_class.__name__, (model_class,), {"__init__": init, "sanitize": sanitize})
        watched.__module__ = model_class.__module__
        return watched, args_class

    def take(self, array: mx.array, axis: int, ranges: Ranges) -> mx.array:
        known = self._verbatim.get(id(array))
        axis %= array.ndim
        if known is None:
            pieces = [_slice(array, axis, a, b) for a, b in ranges]
            return mx.contiguous(pieces[0] if len(pieces) == 1 else mx.concatenate(pieces, axis))
        taken = self._read(known[1], axis, ranges)
        return taken if taken.dtype == array.dtype else taken.view(array.dtype)

    def release(self, module: nn.Module) -> None:
        """Forgets a module's arrays, so that those which are evaluated and then converted can go."""
        for _, array in tree_flatten(module.parameters()):
            self.release_array(array)

    def release_array(self, array: mx.array) -> None:
        self._verbatim.pop(id(array), None)

    def _know(self, weights: dict[str, mx.array]) -> None:
        if self._folder is None:
            return
        described = {}
        for file in sorted(self._folder.glob("model*.safetensors")):
            described.update(_tensors(file))
        for name, array in weights.items():
            tensor = described.get(name)
            if tensor is not None and tensor.shape == array.shape and tensor.kind.itemsize == array.itemsize:
                self._verbatim[id(array)] = (array, tensor)

    def _read(self, tensor: _Tensor, axis: int, ranges: Ranges) -> mx.array:
        start = tensor.offset - tensor.offset % mmap.ALLOCATIONGRANULARITY
        with open(tensor.file, "rb") as source:
            span = tensor.offset - start + tensor.length
            with mmap.mmap(source.fileno(), span, offset=start, access=mmap.ACCESS_READ) as file:
                count = tensor.length // tensor.kind.itemsize
                whole = np.frombuffer(file, tensor.kind, count, tensor.offset - start).reshape(tensor.shape)
                pieces = [whole[(*(slice(None),) * axis, slice(a, b))] for a, b in ranges]
                copied = np.concatenate(pieces, axis) if len(pieces) > 1 else pieces[0].copy()
                del whole, pieces  # the file cannot be closed while they look into it
        taken = mx.array(copied)
        self.bytes_read += taken.nbytes
        return taken


def _slice(array: mx.array, axis: int, start: int, end: int) -> mx.array:
    return array[(*(slice(None),) * axis, slice(start, end))]


def _tensors(file: Path) -> dict[str, _Tensor]:
    with open(file, "rb") as source:
        length = int.from_bytes(source.read(8), "little")
        header = json.loads(source.read(length))
    found = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] in _KINDS:
            start, end = entry["data_offsets"]
            kind = np.dtype(_KINDS[entry["dtype"]])
            found[name] = _Tensor(file, 8 + length + start, tuple(entry["shape"]), kind, end - start)
    return found
