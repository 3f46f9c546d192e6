"""From the states of all tokens to one unit vector, as sentence-transformers' files beside a model say."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from ..folder import ModelRefused

# In the order in which sentence-transformers puts several of them together.
_WAYS: dict[str, Callable[[mx.array], mx.array]] = {
    "cls": lambda states: states[0],
    "max": lambda states: states.max(axis=0),
    "mean": lambda states: states.mean(axis=0),
    "mean_sqrt_len": lambda states: states.sum(axis=0) / states.shape[0] ** 0.5,
    "lasttoken": lambda states: states[-1],
}
_FIELDS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")


def pooling_of(folder: Path) -> tuple[str, ...]:
    """The mean where nothing is said, which is what sentence-transformers does. Raises ModelRefused."""
    for module in _read(folder / "modules.json", []):
        kind = str(module.get("type", "")).rsplit(".", 1)[-1] if isinstance(module, dict) else ""
        if kind not in _KNOWN_MODULES:
            raise ModelRefused(f'its modules.json asks for a "{kind[:40]}" module behind the encoder, which is not known')
    told = _read(folder / "1_Pooling" / "config.json", {})
    said = told.get("pooling_mode") if isinstance(told, dict) else None
    if isinstance(said, str):
        wanted = (said,)
    elif isinstance(said, list):
        wanted = tuple(map(str, said))
    else:
        wanted = tuple(way for field, way in _FIELDS.items() if isinstance(told, dict) and told.get(field) is True)
    for way in wanted:
        if way not in _WAYS:
            raise ModelRefused(f'its pooling "{way[:40]}" is not known; {", ".join(_WAYS)} are')
    return tuple(way for way in _WAYS if way in wanted) or ("mean",)


def tokens_told(folder: Path) -> int | None:
    """How long a text its makers had in mind, where they say so."""
    told = _read(folder / "sentence_bert_config.json", {})
    value = told.get("max_seq_length") if isinstance(told, dict) else None
    return value if isinstance(value, int) and value > 0 else None


def pooled(states: mx.array, ways: tuple[str, ...]) -> bytes:
    """Of the states of one text (tokens × width); little-endian 32-bit floats."""
    wide = states.astype(mx.float32)
    vector = np.array(mx.concatenate([_WAYS[way](wide) for way in ways]), dtype="<f4")
    length = float(np.linalg.norm(vector))
    return (vector / length if length > 0 else vector).astype("<f4").tobytes()


def _read(path: Path, otherwise: Any) -> Any:
    try:
        return json.loads(path.read_bytes())
    except OSError:
        return otherwise
    except ValueError:
        raise ModelRefused(f'"{path.name}" of {path.parent.name} is not JSON') from None
