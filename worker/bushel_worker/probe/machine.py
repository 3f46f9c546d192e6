"""Decode steps and prefills of synthetic models on this machine alone."""

import gc
import time
from typing import Any

import mlx.core as mx
import mlx_lm
from mlx_lm.models.cache import make_prompt_cache

from .synthetic import CPU_SHAPES, GPU_SHAPES, VOCABULARY, Shape, build

PROMPT_TOKENS = 16
STEPS_SKIPPED = 3
PREFILL_TOKENS = 128
PREFILL_RUNS = 4


def measure(steps: int) -> dict[str, Any]:
    on_cpu = mx.default_device().type == mx.DeviceType.cpu
    dtype = mx.float32 if on_cpu else mx.bfloat16
    decode, prefill = [], []
    for shape in CPU_SHAPES if on_cpu else GPU_SHAPES:
        model = build(shape, dtype)
        decode.append(_decode(model, shape, dtype, steps))
        # The widest shape, which comes first, fills the arithmetic units best, as the models that are planned for do.
        if not prefill:
            prefill.append(_prefill(model, shape))
        del model
        gc.collect()
        mx.clear_cache()
    return {
        "versions": {"mlx": mx.__version__, "worker": mlx_lm.__version__},
        "decode": decode,
        "prefill": prefill,
    }


def _tokens(count: int) -> mx.array:
    return mx.array([[index % VOCABULARY for index in range(count)]])


def _decode(model: Any, shape: Shape, dtype: mx.Dtype, steps: int) -> dict[str, Any]:
    caches = make_prompt_cache(model)
    mx.eval(model(_tokens(PROMPT_TOKENS), cache=caches))
    token = mx.array([[1]])
    seconds = []
    for _ in range(STEPS_SKIPPED + steps):
        began = time.perf_counter()
        token = mx.argmax(model(token, cache=caches)[:, -1], axis=-1)[:, None]
        mx.eval(token)
        seconds.append(time.perf_counter() - began)
    return {
        "shape": shape.name,
        "bytesRead": shape.parameters_read * dtype.size,
        "kernels": shape.kernels,
        "seconds": seconds[STEPS_SKIPPED:],
    }


def _prefill(model: Any, shape: Shape) -> dict[str, Any]:
    seconds = []
    for _ in range(PREFILL_RUNS):
        caches = make_prompt_cache(model)
        began = time.perf_counter()
        mx.eval(model(_tokens(PREFILL_TOKENS), cache=caches))
        seconds.append(time.perf_counter() - began)
    return {"flops": 2 * shape.layers * shape.layer_parameters * PREFILL_TOKENS, "seconds": seconds[1:]}
