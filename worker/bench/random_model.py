"""Writes a Llama of any size with random weights and a byte-level tokenizer, for measurements."""

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten, tree_map
from mlx_lm.utils import _get_classes

PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def write_random_model(folder: Path, dtype: mx.Dtype = mx.float32, scale: float = 1.0, **changes: Any) -> None:
    """`scale`: of all matrices; 2.5 keeps small models from repeating themselves."""
    config = dict(
        model_type="llama", hidden_size=32, num_hidden_layers=1, intermediate_size=64, num_attention_heads=2,
        num_key_value_heads=2, rms_norm_eps=1e-5, vocab_size=512, rope_theta=1e4, tie_word_embeddings=False,
        max_position_embeddings=8192, eos_token_id=256,
    )  # fmt: skip
    config.update(changes)
    model_class, args = _get_classes(config)
    model = model_class(args.from_dict(config))
    model.update(tree_map(lambda array: array * scale if array.ndim > 1 else array, model.parameters()))
    model.set_dtype(dtype)
    folder.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(folder / "model.safetensors"), dict(tree_flatten(model.parameters())), {"format": "mlx"})
    characters = [chr(b) for b in PRINTABLE] + [chr(256 + n) for n in range(256 - len(PRINTABLE))]
    end = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
    tokenizer = {
        "version": "1.0",
        "added_tokens": [{"id": 256, "content": "<|end|>", **end}],
        "normalizer": None,
        "pre_tokenizer": BYTE_LEVEL,
        "post_processor": None,
        "decoder": BYTE_LEVEL,
        "model": {"type": "BPE", "vocab": {c: n for n, c in enumerate(characters)}, "merges": []},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>", "chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
