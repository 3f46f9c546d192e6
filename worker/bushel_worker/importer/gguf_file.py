"""Reads the header of a GGUF file and trusts nothing in it: every count, length and offset is checked
against the file's size before it is used."""

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

COUNT_MAX = 1 << 20  # tensors, metadata keys: the largest real files have a few thousand
NAME_BYTES_MAX = 1 << 16
DIMENSIONS_MAX = 4

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


class ImportRefused(Exception):
    """Why this file cannot be imported, in one sentence."""


@dataclass(frozen=True)
class Tensor:
    name: str
    shape: tuple[int, ...]  # rows first, as numpy and MLX count
    kind: GGMLQuantizationType
    start: int  # from the beginning of the file
    size_bytes: int

    @property
    def quantised(self) -> bool:
        return GGML_QUANT_SIZES[self.kind][0] > 1


@dataclass(frozen=True)
class GgufFile:
    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, Tensor]
    content: mmap.mmap

    def raw(self, tensor: Tensor) -> np.ndarray:
        return np.frombuffer(self.content, np.uint8, tensor.size_bytes, tensor.start)


class _Cursor:
    """A position in the file that cannot run past its end."""

    def __init__(self, content: mmap.mmap) -> None:
        self.content, self.position, self.size = content, 0, len(content)

    def skip(self, count: int, what: str) -> int:
        start = self.position
        if count < 0 or count > self.size - start:
            raise ImportRefused(
                f"the file ends inside {what}: {count} bytes announced at byte {start}, {self.size - start} left"
            )
        self.position = start + count
        return start

    def number(self, code: str, what: str) -> Any:
        layout = "<" + code
        return struct.unpack_from(layout, self.content, self.skip(struct.calcsize(layout), what))[0]

    def text(self, what: str, bytes_max: int | None = None) -> str:
        length = self.number("Q", what)
        if bytes_max is not None and length > bytes_max:
            raise ImportRefused(f"{what} is {length} bytes long, more than {bytes_max}: the file is damaged")
        start = self.skip(length, what)
        return self.content[start : start + length].decode("utf-8", "replace")

    def value(self, kind: int, what: str, depth: int = 0) -> Any:
        if kind in _SCALARS:
            return self.number(_SCALARS[kind], what)
        if kind == _STRING:
            return self.text(what)
        if kind != _ARRAY or depth > 1:
            raise ImportRefused(f"{what} has the unknown value type {kind}")
        inner, count = self.number("I", what), self.number("Q", what)
        if inner in _SCALARS:
            layout = np.dtype("<" + _SCALARS[inner].replace("?", "B"))
            start = self.skip(count * layout.itemsize, what)
            return np.frombuffer(self.content, layout, count, start)
        if count * 8 > self.size - self.position:
            raise ImportRefused(f"{what} announces {count} entries, more than the rest of the file can hold")
        return [self.value(inner, what, depth + 1) for _ in range(count)]


def read_gguf(path: Path) -> GgufFile:
    try:
        with open(path, "rb") as source:
            content = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise ImportRefused(f"the file cannot be read: {error}") from None
    cursor = _Cursor(content)
    start = cursor.skip(4, "its magic number")
    if content[start : start + 4] != b"GGUF":
        raise ImportRefused("it is not a GGUF file: it does not begin with GGUF")
    version = cursor.number("I", "its version")
    if version not in (2, 3):
        raise ImportRefused(f"GGUF version {version} is not supported; versions 2 and 3 are")
    tensor_count, key_count = cursor.number("Q", "its tensor count"), cursor.number("Q", "its key count")
    if tensor_count > COUNT_MAX or key_count > COUNT_MAX:
        raise ImportRefused(f"it announces {tensor_count} tensors and {key_count} keys: the file is damaged")

    metadata: dict[str, Any] = {}
    for _ in range(key_count):
        key = cursor.text("a metadata key", NAME_BYTES_MAX)
        metadata[key] = cursor.value(cursor.number("I", f'the type of "{key}"'), f'the value of "{key}"')

    headers = [_tensor_header(cursor) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1 or alignment > 1 << 20 or alignment & (alignment - 1):
        raise ImportRefused(f"its alignment is {alignment}, which is not a power of two")
    data_start = -(-cursor.position // alignment) * alignment
    return GgufFile(path, metadata, _placed(headers, data_start, len(content)), content)


def _tensor_header(cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int]:
    name = cursor.text("a tensor name", NAME_BYTES_MAX)
    dimensions = cursor.number("I", f'tensor "{name}"')
    if dimensions > DIMENSIONS_MAX:
        raise ImportRefused(f'tensor "{name}" has {dimensions} dimensions, more than {DIMENSIONS_MAX}')
    shape = tuple(cursor.number("Q", f'tensor "{name}"') for _ in range(dimensions))[::-1]
    return name, shape, cursor.number("I", f'tensor "{name}"'), cursor.number("Q", f'tensor "{name}"')


def _placed(headers: list[tuple[str, tuple[int, ...], int, int]], data_start: int, size: int) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for name, shape, kind_number, offset in headers:
        try:
            kind = GGMLQuantizationType(kind_number)
        except ValueError:
            raise ImportRefused(f'tensor "{name}" has the unknown type {kind_number}') from None
        block_values, block_bytes = GGML_QUANT_SIZES[kind]
        values = 1
        for length in shape:
            values *= length
        if not shape or values == 0 or shape[-1] % block_values:
            raise ImportRefused(f'tensor "{name}" has the impossible shape {list(shape)} for type {kind.name}')
        size_bytes = values // block_values * block_bytes
        if data_start + offset + size_bytes > size:
            raise ImportRefused(
                f'tensor "{name}" should end at byte {data_start + offset + size_bytes}, but the file ends at {size}'
            )
        if name in tensors:
            raise ImportRefused(f'tensor "{name}" is listed twice')
        tensors[name] = Tensor(name, shape, kind, data_start + offset, size_bytes)
    in_order = sorted(tensors.values(), key=lambda tensor: tensor.start)
    for before, after in zip(in_order, in_order[1:]):
        if before.start + before.size_bytes > after.start:
            raise ImportRefused(f'tensors "{before.name}" and "{after.name}" overlap')
    return tensors
