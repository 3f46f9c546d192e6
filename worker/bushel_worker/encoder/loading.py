"""Loads an encoder: names put right, everything there that must be, read part by part."""

from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.utils import dequantize_model
from transformers import AutoTokenizer

from ..folder import ModelRefused
from ..frames import Load
from ..memory import CacheCost, MemoryPlan
from ..service import Service
from .engine import EncoderEngine, EncoderLanguage
from .families import FAMILIES, Shape, shape_of, tensor_name
from .model import Encoder
from .pooling import pooling_of, tokens_told


def open_encoder(folder: Path, config: dict[str, Any], dtype: mx.Dtype | None, on_cpu: bool) -> tuple[Encoder, Shape]:
    """The model, nothing of it read yet. Raises ModelRefused."""
    shape = shape_of(config)
    model = Encoder(shape)
    family = FAMILIES[config["model_type"]]
    tensors = {}
    for path in sorted(folder.glob("model*.safetensors")):
        for name, array in mx.load(str(path)).items():
            known = tensor_name(family, name)
            if known is not None:
                tensors[known] = array
    quantized = config.get("quantization")
    if isinstance(quantized, dict):
        sizes = {key: quantized[key] for key in ("group_size", "bits", "mode") if key in quantized}
        nn.quantize(model, **sizes, class_predicate=lambda path, _: f"{path}.scales" in tensors)
    wanted = dict(tree_flatten(model.parameters()))
    for name, array in wanted.items():
        if name not in tensors:
            raise ModelRefused(f'its files have no tensor "{name}"')
        if tensors[name].shape != array.shape:
            raise ModelRefused(f'its tensor "{name}" has shape {tensors[name].shape}, not {array.shape}')
    cast = {
        name: array.astype(dtype) if dtype is not None and mx.issubdtype(array.dtype, mx.floating) else array
        for name, array in ((name, tensors[name]) for name in wanted)
    }
    model.load_weights(list(cast.items()), strict=True)
    if on_cpu and isinstance(quantized, dict):
        dequantize_model(model)
    model.eval()
    return model, shape


def encoder_service(
    load: Load, model: Encoder, shape: Shape, memory: tuple[int, int], about: tuple[str, dict[str, str]], on_cpu: bool
) -> Service:
    """`memory`: bytes of weights and of the working share; `about`: the device and the versions."""
    folder = Path(load.model_path)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except Exception as error:  # transformers and tokenizers raise all kinds here
        raise ModelRefused(f"its tokenizer cannot be opened ({type(error).__name__})") from None
    if len(tokenizer) > shape.vocabulary:
        raise ModelRefused(f"its tokenizer has {len(tokenizer)} tokens, but the model knows {shape.vocabulary}")
    weights, working = memory
    # One text at a time: its states, and the widest of what one layer makes of them.
    per_token = 4 * (8 * shape.hidden + 2 * shape.inner)
    plan = MemoryPlan(
        capacity_bytes=load.limits.memory_bytes_max - weights - working,
        weights_bytes=weights,
        working_bytes=working,
        costs=(CacheCost(per_token),),
        score_bytes=shape.heads * 4 * 2 if on_cpu else 0,
    )
    if plan.tokens_max() < 8:
        raise ModelRefused(f"it needs more than the {load.limits.memory_bytes_max / 1e6:.0f} MB that this rank may use")
    told = tokens_told(folder) or tokenizer.model_max_length  # absurdly large where nobody said
    limits = [shape.tokens_max, int(min(told, shape.tokens_max)), load.limits.context_tokens_max]
    device, versions = about
    return Service(
        engine=EncoderEngine(model, pooling_of(folder)),
        language=EncoderLanguage(tokenizer, shape.vocabulary),
        memory=plan,
        limits=load.limits,
        context_tokens=min(limit for limit in limits if limit),
        merging=False,
        reading_together=False,
        tokens_per_second=1000.0,
        device=device,
        versions=versions,
        canary=[min(shape.vocabulary - 1, 5), min(shape.vocabulary - 1, 7)],
    )
