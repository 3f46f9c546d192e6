"""Dequantises tensors and writes them as safetensors, always in the same order and layout."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

from .architecture import Target, split_pairs
from .gguf_file import GgufFile, ImportRefused

FLOAT_BYTES_MAX = 4 << 30  # beyond this a quantised source stays quantised
SHARD_BYTES_MAX = 4 << 30
GROUP = 32
FOUR_BIT = {"Q4_0", "Q4_1", "Q4_K"}  # blocks of 32 on a grid of 16 steps: they fit four bits again
SCALE_MIN = 2.0**-20  # float16 still tells steps of this size apart; a group of equal values needs no finer
_SIZES = {"F16": 2, "BF16": 2, "U32": 4}


class BeyondFloat16(Exception):
    """A value does not fit float16: the whole folder must be bfloat16."""


@dataclass(frozen=True)
class Stored:
    """One entry of the safetensors files."""

    name: str
    kind: str
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * _SIZES[self.kind]


@dataclass(frozen=True)
class Recipe:
    """How every tensor of one import is stored."""

    kind: str
    quantise: bool

    def bits(self, target: Target, source: GGMLQuantizationType) -> int:
        """16: not quantised."""
        if not (self.quantise and len(target.shape) == 2 and target.shape[1] % GROUP == 0):
            return 16
        return 4 if source.name in FOUR_BIT else 8

    def entries(self, target: Target, source: GGMLQuantizationType) -> list[Stored]:
        bits = self.bits(target, source)
        if bits == 16:
            return [Stored(target.name, self.kind, target.shape)]
        rows, columns = target.shape
        base = target.name.removesuffix(".weight")
        return [
            Stored(f"{base}.weight", "U32", (rows, columns * bits // 32)),
            Stored(f"{base}.scales", self.kind, (rows, columns // GROUP)),
            Stored(f"{base}.biases", self.kind, (rows, columns // GROUP)),
        ]


def choose_recipe(gguf: GgufFile, targets: list[Target]) -> Recipe:
    sources = [gguf.tensors[target.source] for target in targets]
    bfloat = any(source.kind.name == "BF16" for source in sources)
    float_bytes = sum(2 * int(np.prod(target.shape, dtype=np.int64)) for target in targets)
    quantised = any(source.quantised for source in sources)
    return Recipe("BF16" if bfloat else "F16", quantised and float_bytes > FLOAT_BYTES_MAX)


def write_weights(
    gguf: GgufFile, targets: list[Target], recipe: Recipe, folder: Path, report: Callable[[int, int], None]
) -> None:
    """Writes model*.safetensors (and the index when there are several)."""
    stored = {target: recipe.entries(target, gguf.tensors[target.source].kind) for target in targets}
    shards: list[list[Target]] = [[]]
    shard_bytes = total_bytes = 0
    for target in targets:
        size = sum(entry.size_bytes for entry in stored[target])
        if shards[-1] and shard_bytes + size > SHARD_BYTES_MAX:
            shards.append([])
            shard_bytes = 0
        shards[-1].append(target)
        shard_bytes += size
        total_bytes += size
    written, index = 0, {}
    for number, shard in enumerate(shards, 1):
        name = "model.safetensors" if len(shards) == 1 else f"model-{number:05}-of-{len(shards):05}.safetensors"
        with open(folder / name, "wb") as out:
            out.write(_header([entry for target in shard for entry in stored[target]]))
            for target in shard:
                for entry, part in zip(stored[target], convert(gguf, target, recipe)):
                    out.write(part.tobytes())
                    index[entry.name] = name
                    written += entry.size_bytes
                report(written, total_bytes)
    if len(shards) > 1:
        document = {"metadata": {"total_size": total_bytes}, "weight_map": dict(sorted(index.items()))}
        (folder / "model.safetensors.index.json").write_text(json.dumps(document, indent=2) + "\n")


def convert(gguf: GgufFile, target: Target, recipe: Recipe) -> list[np.ndarray]:
    """The arrays of the recipe's entries."""
    source = gguf.tensors[target.source]
    raw = gguf.raw(source).reshape(*source.shape[:-1], -1)
    try:
        weight = dequantize(raw, source.kind).astype(np.float32, copy=False).reshape(target.shape)
    except NotImplementedError:
        raise ImportRefused(
            f'tensor "{source.name}" has type {source.kind.name}, which cannot be dequantised'
        ) from None
    if not np.isfinite(weight).all():
        raise ImportRefused(f'tensor "{source.name}" holds values that are not numbers: the file is damaged')
    if target.heads:
        weight = split_pairs(weight, target.heads)
    bits = recipe.bits(target, source.kind)
    return [_as_kind(weight, recipe.kind)] if bits == 16 else _affine(weight, bits, recipe.kind)


def _as_kind(values: np.ndarray, kind: str) -> np.ndarray:
    if kind == "F16":
        if np.abs(values).max(initial=0) > 65504:
            raise BeyondFloat16
        return values.astype("<f2")
    bits = np.ascontiguousarray(values, "<f4").view("<u4")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def _affine(weight: np.ndarray, bits: int, kind: str) -> list[np.ndarray]:
    """MLX's affine form: value = scale * level + bias for groups of 32, levels packed lowest first."""
    rows, top = weight.shape[0], 2**bits - 1
    groups = weight.reshape(rows, -1, GROUP)
    low = groups.min(-1)
    span = groups.max(-1) - low
    # Four-bit blocks lie on a grid already. Its step is the smallest gap between two values, so that the
    # levels come out as they were; where no grid is found, the whole span is divided evenly.
    count = np.float32(top)
    if bits == 4:
        gaps = np.diff(np.sort(groups, -1), axis=-1)
        gap = np.where(gaps > span[..., None] * 1e-3, gaps, np.inf).min(-1)
        count = np.clip(np.rint(span / gap), 1, top)
    scales = _as_kind(np.maximum(span / count, SCALE_MIN), kind)
    biases = _as_kind(low, kind)
    steps = (groups - _as_float(biases, kind)[..., None]) / _as_float(scales, kind)[..., None]
    levels = np.clip(np.rint(steps), 0, top).astype("<u1").reshape(rows, -1)
    packed = levels if bits == 8 else levels[:, 0::2] | levels[:, 1::2] << 4
    return [np.ascontiguousarray(packed).view("<u4"), scales, biases]


def _as_float(values: np.ndarray, kind: str) -> np.ndarray:
    return values.astype(np.float32) if kind == "F16" else (values.astype("<u4") << 16).view("<f4")


def _header(entries: list[Stored]) -> bytes:
    document: dict[str, object] = {"__metadata__": {"format": "mlx"}}
    offset = 0
    for entry in entries:
        document[entry.name] = {
            "dtype": entry.kind,
            "shape": list(entry.shape),
            "data_offsets": [offset, offset + entry.size_bytes],
        }
        offset += entry.size_bytes
    text = json.dumps(document, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
