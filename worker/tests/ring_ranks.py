"""One rank of a ring: shares tiny models of many kinds and says how far the results are from those of whole
ones, a JSON line each. Started by test_sharing, in a process for every rank."""

import json
import sys
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten

from bushel_worker.world.experts import share_experts
from bushel_worker.world.library import shard_evenly
from bushel_worker.world.parts import Parts
from bushel_worker.world.shares import CannotShare, fractions
from bushel_worker.world.tensor import llama_shaped, share_layer
from bushel_worker.world.vocabulary import share_vocabulary

from .tiny import tiny_model

WIDE: dict[str, Any] = dict(hidden_size=128, intermediate_size=256, vocab_size=256, head_dim=32)

# name, how, changes, quantised, shares
CASES: list[tuple[str, str, dict[str, Any], bool, list[float]]] = [
    ("llama", "tensor", {}, False, []),
    ("llama", "tensor", dict(WIDE, num_attention_heads=8, num_key_value_heads=4), True, [3, 1]),
    ("llama", "tensor", dict(num_attention_heads=9, num_key_value_heads=3), False, [1, 1]),
    ("llama", "tensor", dict(num_attention_heads=9, num_key_value_heads=1), False, [2, 1]),
    ("llama", "tensor", dict(tie_word_embeddings=True, intermediate_size=100), False, [5, 3]),
    ("qwen2", "tensor", {}, False, [2, 1]),
    ("qwen3", "tensor", {}, False, []),
    ("gemma3_text", "tensor", {}, False, []),
    ("cohere2", "tensor", {}, False, []),
    ("gpt_oss", "library", {}, False, []),
    ("qwen3_moe", "library", {}, False, []),
    ("deepseek_v3", "library", {}, False, []),
    ("gpt_oss", "expert", {}, False, []),
    ("mixtral", "expert", {}, False, [3, 1]),
    ("qwen3_moe", "expert", dict(WIDE, moe_intermediate_size=64), True, []),
    ("deepseek_v3", "expert", {}, False, []),
    ("qwen3_next", "expert", {}, False, []),
]


def shared(model: Any, how: str, group: Any, wanted: list[float]) -> None:
    parts = Parts()
    if how == "library":
        shard_evenly(model, group)
    for layer in model.layers:
        if how == "tensor":
            if not llama_shaped(layer):
                raise CannotShare("not llama-shaped")
            share_layer(layer, group, wanted, parts)
        elif how == "expert":
            share_experts(layer, group, wanted, parts)
    share_vocabulary(model, (True, True), group, wanted, parts)


def main() -> None:
    group = mx.distributed.init(backend="ring", strict=True)
    for name, how, changes, quantised, shares in CASES:
        model = tiny_model(name, **changes)
        if quantised:
            nn.quantize(model, 32, 4)
        prompts = [mx.array([[(7 + 31 * index) % 128 for index in range(length)]] * 2) for length in (1, 40)]
        wanted = [model(prompt) for prompt in prompts]
        mx.eval(wanted)
        before = _bytes(model)
        shared(model, how, group, fractions(shares, group.size()))
        mx.eval(model.parameters())
        worst = 0.0
        for prompt, expected in zip(prompts, wanted):
            got = model(prompt)
            worst = max(worst, float(mx.max(mx.abs(got - expected)) / mx.max(mx.abs(expected))))
        told = {"case": f"{name} {how} {shares}", "difference": worst, "share": _bytes(model) / before}
        print(json.dumps({"rank": group.rank(), **told}), flush=True)


def _bytes(model: Any) -> int:
    return sum(array.nbytes for _, array in tree_flatten(model.parameters()))


if __name__ == "__main__":
    main()
    sys.exit(0)
