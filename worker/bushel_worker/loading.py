"""Loads a stage for MLX: checks, lazy read, only what the stage holds, one layer at a time."""

import ctypes
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_map_with_path
from mlx_lm.utils import dequantize_model, load_model, load_tokenizer

from . import VERSION
from .embedding import pools_last_token
from .encoder.families import is_encoder
from .encoder.loading import encoder_service, open_encoder
from .engine import MlxEngine
from .engine_port import Engine
from .folder import ModelRefused
from .frames import Load
from .hub_language import HubLanguage
from .memory import CacheCost, MemoryPlan
from .selftest import entering, prompts_agree, rows_agree
from .service import Service
from .stage import CannotCut, Stage
from .stage_port import StagePort
from .stage_rows import StageRows
from .world.company import Company
from .world.parts import Parts
from .world.share import Precision, share_stage
from .world.shares import CannotShare

Progress = Callable[[str, float, float], None]

WORKING_BYTES_MIN, WORKING_BYTES_MAX = 64 << 20, 1 << 30
PROBE_TOKENS = 64
CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "seq_length", "n_ctx")
CONTEXT_DEFAULT = 4096
# Windows and recurrent states forget: what they held before cannot be had back by cutting them short.
TRIMMABLE = ("KVCache", "QuantizedKVCache")
_DTYPES = {"float32": mx.float32, "bfloat16": mx.bfloat16, "float16": mx.float16}




@dataclass(frozen=True)
class LoadedStage:
    port: StagePort
    layers: tuple[int, int]
    on_cpu: bool
    memory: MemoryPlan
    merging: bool  # whether rows may share a micro-batch
    together: bool  # whether prompts may be read in one pass
    tokens_per_second: float
    context_tokens: int
    vocabulary: int  # the width of the logits; 0 where none are made
    trims: bool = False  # whether its caches can be cut short

    def facts(self) -> dict[str, Any]:
        """What the head must know of another stage."""
        return {
            "layers": self.layers,
            "memory": asdict(self.memory),
            "merging": self.merging,
            "together": self.together,
            "tokensPerSecond": self.tokens_per_second,
            "contextTokens": self.context_tokens,
            "vocabulary": self.vocabulary,
            "kvBytesPerToken": self.memory.per_token,
            "keptBytesMax": self.memory.working_bytes // 4,
            "keeps": hasattr(self.port, "keep"),
            "trims": self.trims,
        }


def build_service(load: Load, config: dict[str, Any], progress: Progress) -> Service:
    """Of a folder that `check_folder` has passed, with its config. Raises ModelRefused with the reason."""
    if is_encoder(config):
        return _build_encoder(load, config, progress)
    loaded = load_stage(load, config, progress)
    return service_of(load, loaded, MlxEngine(loaded.port, loaded.on_cpu), open_tokenizer(load, config))


def _build_encoder(load: Load, config: dict[str, Any], progress: Progress) -> Service:
    on_cpu = mx.default_device() == mx.cpu
    limit = load.limits.memory_bytes_max
    dtype = _DTYPES.get(load.dtype, mx.float32 if on_cpu else None)
    model, shape = open_encoder(Path(load.model_path), config, dtype, on_cpu)
    weights_bytes = _read_weights(model.groups(), limit, progress)
    about = (device_name(on_cpu), versions())
    return encoder_service(load, model, shape, (weights_bytes, _working_bytes(limit)), about, on_cpu)


def service_of(load: Load, loaded: LoadedStage, engine: Engine, tokenizer: Any) -> Service:
    """For a stage that is a whole model."""
    return Service(
        engine=engine,
        language=HubLanguage(tokenizer, loaded.vocabulary, pools_last_token(Path(load.model_path))),
        memory=loaded.memory,
        limits=load.limits,
        context_tokens=loaded.context_tokens,
        merging=loaded.merging,
        reading_together=loaded.together,
        tokens_per_second=loaded.tokens_per_second,
        device=device_name(loaded.on_cpu),
        versions=versions(),
        canary=[min(loaded.vocabulary - 1, 5), min(loaded.vocabulary - 1, 7)],
        trims=loaded.trims,
    )


def load_stage(load: Load, config: dict[str, Any], progress: Progress, company: Company | None = None) -> LoadedStage:
    """Raises ModelRefused with the reason. The ranks of a world do all of this together, the self-test too."""
    on_cpu = mx.default_device() == mx.cpu
    limit = load.limits.memory_bytes_max
    if company is not None:
        stage, weights_bytes = _read_share(load, company, on_cpu, progress)
    else:
        model = _open(Path(load.model_path))
        _set_dtype(model, load.dtype, on_cpu)
        stage = _cut(model, load)
        weights_bytes = _read_weights(stage.parameter_groups(), limit, progress)
    progress("self-test", 0, 1)
    vocabulary = int(_setting(config, "vocab_size") or 256)
    caches, tokens_per_second, width = _probe(stage, vocabulary)
    heads = _setting(config, "num_key_value_heads") or _setting(config, "num_attention_heads") or 2
    merging = all(hasattr(cache, "merge") for cache in caches) and rows_agree(stage, vocabulary, int(heads))
    together = merging and prompts_agree(stage, vocabulary)
    progress("self-test", 1, 1)
    memory = _memory_plan(config, caches, weights_bytes, limit, on_cpu)
    trims = all(type(cache).__name__ in TRIMMABLE for cache in caches)
    del caches
    _give_back()  # what the tests have used is not kept: a rank holds its share and little else
    rows = StageRows(stage)
    return LoadedStage(
        port=rows if company is None or not load.leads else company.lead(rows),
        layers=stage.span,
        on_cpu=on_cpu,
        memory=memory if company is None else company.tightest(memory),
        merging=merging,
        together=together,
        trims=trims,
        tokens_per_second=tokens_per_second,
        context_tokens=_context_tokens(config, load.limits.context_tokens_max),
        vocabulary=width if stage.last else 0,
    )


def open_tokenizer(load: Load, config: dict[str, Any]) -> Any:
    folder = Path(load.model_path)
    try:
        tokenizer = load_tokenizer(folder, {"trust_remote_code": False}, eos_token_ids=config.get("eos_token_id"))
    except Exception as error:  # transformers and tokenizers raise all kinds here
        raise _refusal(error) from None
    _give_back()
    return tokenizer


def versions() -> dict[str, str]:
    return {
        "bushel": VERSION,
        "python": platform.python_version(),
        "mlx": version("mlx"),
        "mlx-lm": version("mlx-lm"),
        "transformers": version("transformers"),
    }


def dtype_name(dtype: str) -> str:
    """What a rank computes with: ranks of a group must say the same."""
    return "float32" if dtype == "auto" and mx.default_device() == mx.cpu else dtype


def _cut(model: nn.Module, load: Load) -> Stage:
    try:
        stage = Stage(model, None if load.stage_count == 1 else load.layers)
    except CannotCut as error:
        raise ModelRefused(str(error)) from None
    if (stage.first, stage.last) != (load.first, load.last):
        raise ModelRefused(
            f"stage {load.stage_index} of {load.stage_count} was given layers {load.layers[0]} to {load.layers[1]} of "
            f"{stage.count}: the first stage must begin with layer 0 and only the last one end with the last"
        )
    return stage


def _refusal(error: Exception) -> ModelRefused:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return ModelRefused(f"mlx-lm cannot open it: {lines[0][:300]}")


def _open(folder: Path, parts: Parts | None = None) -> nn.Module:
    """The model, nothing of it read yet. Code from the folder is never run."""
    watching = {} if parts is None else {"get_model_classes": parts.model_classes}
    try:
        return load_model(folder, lazy=True, strict=True, trust_remote_code=False, **watching)[0]
    except Exception as error:  # mlx-lm raises all kinds here
        raise _refusal(error) from None


def _set_dtype(model: nn.Module, dtype: str, on_cpu: bool) -> None:
    """auto: float32 on a CPU, where everything else is slower; the model's own type on a GPU."""
    wanted = _DTYPES.get(dtype, mx.float32 if on_cpu else None)
    if wanted is None:
        return
    may_cast = getattr(model, "cast_predicate", lambda _: True) if wanted != mx.float32 else lambda _: True

    def cast(name: str, array: mx.array) -> mx.array:
        return array.astype(wanted) if mx.issubdtype(array.dtype, mx.floating) and may_cast(name) else array

    model.update(tree_map_with_path(cast, model.parameters()))
    if on_cpu:
        dequantize_model(model)


def _read_share(load: Load, company: Company, on_cpu: bool, progress: Progress) -> tuple[Stage, int]:
    parts = Parts(Path(load.model_path))
    model = _open(Path(load.model_path), parts)
    limit = load.limits.memory_bytes_max

    def told(done: float, total: float) -> None:
        _check_size(int(total), limit)
        progress("load", done, total)

    _limit_memory(limit)
    precision = Precision(_DTYPES.get(load.dtype, mx.float32 if on_cpu else None), on_cpu)
    try:
        found = share_stage(model, load, company.group, parts, precision, told)
    except (CannotShare, CannotCut) as error:
        raise ModelRefused(str(error)) from None
    company.together()
    return found


def _give_back() -> None:
    """Free memory goes back to the system: MLX keeps its own for later, and glibc keeps tens of megabytes."""
    mx.clear_cache()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _check_size(total: int, limit: int) -> None:
    if total > limit:
        raise ModelRefused(f"its weights need {_mb(total)} but this rank may use {_mb(limit)}")


def _limit_memory(limit: int) -> None:
    mx.set_cache_limit(_working_bytes(limit) // 2)
    recommended = mx.device_info().get("max_recommended_working_set_size")
    if recommended:
        mx.set_wired_limit(min(int(recommended), limit))


def _read_weights(groups: list[list[mx.array]], limit: int, progress: Progress) -> int:
    total = sum(array.nbytes for group in groups for array in group)
    _check_size(total, limit)
    _limit_memory(limit)
    done = 0
    for group in groups:
        progress("load", done, total)
        mx.eval(group)
        done += sum(array.nbytes for array in group)
    progress("load", total, total)
    mx.clear_cache()
    return total


def _probe(stage: Stage, vocabulary: int) -> tuple[list[Any], float, int]:
    """One row's caches after a short prompt, how fast it was read (the second time: the first warms up), and
    the width of what left."""
    caches: list[Any] = []
    seconds, width = 0.0, 0
    for count in (4, PROBE_TOKENS):
        caches = stage.new_caches()
        began = time.perf_counter()
        out = stage(entering(stage, mx.array([[index % vocabulary for index in range(count)]])), caches)
        mx.eval([cache.state for cache in caches], *([] if stage.last else [out]))
        seconds, width = time.perf_counter() - began, out.shape[-1]
    return caches, PROBE_TOKENS / seconds, width


def _memory_plan(config: dict[str, Any], caches: list[Any], weights_bytes: int, limit: int, on_cpu: bool) -> MemoryPlan:
    working = _working_bytes(limit)
    heads = int(_setting(config, "num_attention_heads") or 32)
    plan = MemoryPlan(
        capacity_bytes=limit - weights_bytes - working,
        weights_bytes=weights_bytes,
        working_bytes=working,
        costs=_together([cost for cache in caches for cost in cache_costs(cache)]),
        score_bytes=heads * 4 * 3 if on_cpu else 0,  # scores, mask and softmax, in float32
    )
    if plan.tokens_max() < PROBE_TOKENS:
        needed = weights_bytes + working + plan.row_bytes(PROBE_TOKENS)
        raise ModelRefused(f"it needs at least {_mb(needed)} but this rank may use {_mb(limit)}")
    return plan


def cache_costs(cache: Any) -> list[CacheCost]:
    """What one layer's cache costs, by looking at one that holds a short prompt."""
    inner = getattr(cache, "caches", None)
    if inner is not None:
        return [cost for part in inner for cost in cache_costs(part)]
    keys = getattr(cache, "keys", None)
    if keys is None:
        return [CacheCost(0, None, cache.nbytes)]
    window = getattr(cache, "max_size", None) or getattr(cache, "chunk_size", None)
    # While a chunk is read, a window holds the chunk as well.
    return [CacheCost(cache.nbytes / keys.shape[2], window and 2 * window)]


def _together(costs: list[CacheCost]) -> tuple[CacheCost, ...]:
    summed: dict[int | None, CacheCost] = {}
    for cost in costs:
        known = summed.get(cost.tokens_max, CacheCost(0, cost.tokens_max))
        summed[cost.tokens_max] = CacheCost(known.per_token + cost.per_token, cost.tokens_max, known.fixed + cost.fixed)
    return tuple(summed.values())


def _working_bytes(limit: int) -> int:
    return min(max(limit // 16, WORKING_BYTES_MIN), WORKING_BYTES_MAX)


def _context_tokens(config: dict[str, Any], limit: int) -> int:
    known = next((int(value) for key in CONTEXT_KEYS if (value := _setting(config, key))), CONTEXT_DEFAULT)
    return min(known, limit) if limit else known


def _setting(config: dict[str, Any], key: str) -> Any:
    """A number of the config, or of its text part."""
    for place in (config, config.get("text_config") or {}):
        if isinstance(place.get(key), (int, float)):
            return place[key]
    return None


def device_name(on_cpu: bool) -> str:
    if on_cpu:
        return f"cpu ({platform.machine()})"
    return f"gpu ({mx.device_info().get('device_name', 'unknown')})"


def _mb(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
