"""A text as one vector: the hidden state behind its last token, made a unit vector, which is how decoder models
that were trained to embed are read (their tokenizers close a text with a token for it)."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from .stage import Stage


def pools_last_token(folder: Path) -> bool:
    """Whether a folder is an embedding model of this kind, by what sentence-transformers writes beside it."""
    try:
        told = json.loads((folder / "1_Pooling" / "config.json").read_text())
        # Newer files name the way, older ones have a field for each.
        return told.get("pooling_mode") == "lasttoken" or told.get("pooling_mode_lasttoken") is True
    except (OSError, ValueError, AttributeError):
        return False


def body_of(stage: Stage) -> Any:
    """The model without its head, or None where it cannot be told from the rest."""
    body = getattr(getattr(stage, "_model", None), "model", None)
    return body if stage.first and stage.last and callable(body) else None


def last_state(stage: Stage, ids: list[int], chunk: int) -> Generator[None, None, bytes]:
    """Reads a text in chunks, yielding after each; little-endian 32-bit floats."""
    body, caches = body_of(stage), stage.new_caches()
    hidden = mx.zeros((1, 1, 1))
    for start in range(0, len(ids), chunk):
        hidden = body(mx.array([ids[start : start + chunk]]), cache=caches)
        mx.eval(hidden, [cache.state for cache in caches])
        yield
    vector = np.array(hidden[0, -1].astype(mx.float32), dtype="<f4")
    length = float(np.linalg.norm(vector))
    return (vector / length if length > 0 else vector).astype("<f4").tobytes()
