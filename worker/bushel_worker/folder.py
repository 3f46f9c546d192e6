"""Looks through a model's folder before any library opens it: no file outside it, no config that would
run code or allocate absurdly, no safetensors whose header lies about the file."""

import json
import math
import re
from pathlib import Path
from typing import Any

HEADER_BYTES_MAX = 256 << 20
JSON_BYTES_MAX = 512 << 20  # tokenizer.json of a large vocabulary is tens of megabytes

_ITEM_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1,
    "U16": 2, "I16": 2, "F16": 2, "BF16": 2, "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8, "C64": 8,
}  # fmt: skip

# Sizes in a config beyond which nobody has built a model; a larger one would only exhaust memory.
_SIZE_MAX = {
    "num_hidden_layers": 2048, "n_layer": 2048, "n_layers": 2048, "num_layers": 2048,
    "hidden_size": 1 << 18, "n_embd": 1 << 18, "intermediate_size": 1 << 21, "vocab_size": 1 << 24,
    "num_attention_heads": 1 << 14, "num_key_value_heads": 1 << 14, "head_dim": 1 << 14,
    "num_experts": 1 << 16, "n_routed_experts": 1 << 16, "num_local_experts": 1 << 16,
}  # fmt: skip


class ModelRefused(Exception):
    """Why a model cannot be loaded, in one sentence."""


def check_folder(folder: Path) -> dict[str, Any]:
    """Returns the config."""
    if not folder.is_dir():
        raise ModelRefused(f'the folder "{folder}" does not exist')
    root = _home_of(folder)
    files = sorted(path for path in folder.iterdir())
    for path in files:
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            raise ModelRefused(f'"{path.name}" is a link to a place outside the folder')
    config = _read_json(folder / "config.json")
    _check_config(config)
    for name in ("tokenizer_config.json", "generation_config.json"):
        if (folder / name).exists():
            _read_json(folder / name)
    weights = [path for path in files if path.suffix == ".safetensors"]
    index = folder / "model.safetensors.index.json"
    if index.exists():
        _check_index(_read_json(index), {path.name for path in weights})
    if not any(path.name.startswith("model") for path in weights):
        raise ModelRefused("it holds no model*.safetensors file")
    for path in weights:
        _check_safetensors(path)
    return config


def _home_of(folder: Path) -> Path:
    """What a model's links may not leave: its folder, or its repository in a hub's cache, whose snapshots are
    links into the blobs beside them."""
    root = folder.resolve()
    return root.parent.parent if root.parent.name == "snapshots" else root


def _read_json(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > JSON_BYTES_MAX:
            raise ModelRefused(f'"{path.name}" is larger than {JSON_BYTES_MAX >> 20} MB')
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelRefused(f'"{path.name}" cannot be read: {error.strerror}') from None
    except (ValueError, RecursionError):
        raise ModelRefused(f'"{path.name}" is not JSON') from None
    if not isinstance(value, dict):
        raise ModelRefused(f'"{path.name}" is not a JSON object')
    return value


def _check_config(config: dict[str, Any]) -> None:
    if config.get("model_file") is not None:
        raise ModelRefused("its config asks to run code from the folder (model_file), which is never done")
    kind = config.get("model_type")
    if not isinstance(kind, str) or not re.fullmatch(r"[A-Za-z0-9_\-]{1,64}", kind):
        raise ModelRefused("its config names no usable model_type")
    for key, value in _settings(config):
        sized = key in _SIZE_MAX and isinstance(value, (int, float)) and not isinstance(value, bool)
        if sized and not 0 <= value <= _SIZE_MAX[key]:
            raise ModelRefused(f'its config says "{key}": {value}, which no model has')


def _settings(config: dict[str, Any], depth: int = 0) -> list[tuple[str, Any]]:
    found = list(config.items())
    for value in config.values():
        if isinstance(value, dict) and depth < 3:
            found += _settings(value, depth + 1)
    return found


def _check_index(index: dict[str, Any], present: set[str]) -> None:
    places = index.get("weight_map")
    if not isinstance(places, dict):
        raise ModelRefused('"model.safetensors.index.json" has no weight_map')
    for name in set(map(str, places.values())):
        if name not in present:
            known = "/" not in name and "\\" not in name and name not in ("", ".", "..")
            raise ModelRefused(
                f'the index names "{name[:80]}", which is {"missing" if known else "outside the folder"}'
            )


def _check_safetensors(path: Path) -> None:
    size = path.stat().st_size
    with open(path, "rb") as source:
        length = int.from_bytes(source.read(8), "little")
        if size < 8 or length > size - 8 or length > HEADER_BYTES_MAX:
            raise ModelRefused(f'"{path.name}" is cut short: its header should have {length} bytes of {size}')
        try:
            header = json.loads(source.read(length))
        except (ValueError, RecursionError):
            header = None
    if not isinstance(header, dict):
        raise ModelRefused(f'the header of "{path.name}" is not JSON')
    data_bytes = size - 8 - length
    spans = []
    for name, entry in header.items():
        if name != "__metadata__":
            spans.append(_span(path.name, name, entry, data_bytes))
    spans.sort()
    for (_, end, name), (start, _, other) in zip(spans, spans[1:]):
        if start < end:
            raise ModelRefused(f'in "{path.name}" the tensors "{name}" and "{other}" overlap')


def _span(file: str, name: str, entry: Any, data_bytes: int) -> tuple[int, int, str]:
    try:
        kind, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        item = _ITEM_BYTES[kind]
        whole = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in [*shape, start, end])
    except (TypeError, KeyError, ValueError):
        raise ModelRefused(f'in "{file}" the tensor "{name[:80]}" is described wrongly') from None
    if not whole or start > end or end > data_bytes:
        raise ModelRefused(f'in "{file}" the tensor "{name[:80]}" lies outside the file')
    if len(shape) > 16 or math.prod(shape) * item != end - start:
        raise ModelRefused(f'in "{file}" the tensor "{name[:80]}" has shape {shape} but {end - start} bytes'[:300])
    return start, end, name
