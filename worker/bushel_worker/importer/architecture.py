"""What the architectures of the Llama family are called in GGUF and in mlx-lm: config, tensor names,
shapes, and the order of rotary pairs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .gguf_file import GgufFile, ImportRefused


@dataclass(frozen=True)
class Family:
    model_type: str
    class_name: str
    # GGUF keeps the rotary pairs of these next to each other; mlx-lm wants halves.
    interleaved_heads: bool = False
    attention_bias: bool = False
    head_norms: bool = False


FAMILIES = {
    "llama": Family("llama", "LlamaForCausalLM", interleaved_heads=True),
    "qwen2": Family("qwen2", "Qwen2ForCausalLM", attention_bias=True),
    "qwen3": Family("qwen3", "Qwen3ForCausalLM", head_norms=True),
}


@dataclass(frozen=True)
class Target:
    """One tensor of the folder: which one of the file it comes from, and what it must look like."""

    name: str
    source: str
    shape: tuple[int, ...]
    heads: int = 0  # > 0: rows are interleaved rotary pairs of this many heads


def family_of(gguf: GgufFile) -> Family:
    architecture = gguf.metadata.get("general.architecture")
    family = FAMILIES.get(architecture) if isinstance(architecture, str) else None
    if family is None:
        raise ImportRefused(f'architecture "{architecture}" is not supported; {", ".join(sorted(FAMILIES))} are')
    if gguf.metadata.get(f"{architecture}.expert_count", 0):
        raise ImportRefused(f'a mixture of experts in architecture "{architecture}" is not supported')
    return family


def describe(gguf: GgufFile, family: Family) -> tuple[dict[str, Any], list[Target]]:
    """The config of the folder and the tensors that it must hold."""
    hidden, layers = _size(gguf, "embedding_length"), _size(gguf, "block_count")
    heads = _size(gguf, "attention.head_count")
    kv_heads = _size(gguf, "attention.head_count_kv", heads)
    inner = _size(gguf, "feed_forward_length")
    head_size = _size(gguf, "attention.key_length", hidden // heads)
    if layers > len(gguf.tensors):
        raise ImportRefused(f"it announces {layers} layers but holds only {len(gguf.tensors)} tensors")
    if _size(gguf, "attention.value_length", head_size) != head_size:
        raise ImportRefused("keys and values of different width are not supported")
    if _size(gguf, "rope.dimension_count", head_size) != head_size:
        raise ImportRefused("rotating only a part of each head is not supported")
    embedding = gguf.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2 or embedding.shape[1] != hidden:
        raise ImportRefused(f'tensor "token_embd.weight" is missing or does not have {hidden} columns')
    vocabulary = embedding.shape[0]
    tied = "output.weight" not in gguf.tensors
    biased = family.attention_bias or "blk.0.attn_q.bias" in gguf.tensors

    config: dict[str, Any] = {
        "architectures": [family.class_name],
        "model_type": family.model_type,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "intermediate_size": inner,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_size,
        "vocab_size": vocabulary,
        "max_position_embeddings": _size(gguf, "context_length"),
        "rms_norm_eps": _number(gguf, "attention.layer_norm_rms_epsilon", 1e-5),
        "rope_theta": _number(gguf, "rope.freq_base", 10000.0),
        "tie_word_embeddings": tied,
        "attention_bias": biased,
        "hidden_act": "silu",
    }
    scaling = _rope_scaling(gguf, config)
    if scaling:
        config["rope_scaling"] = scaling

    query, key = heads * head_size, kv_heads * head_size
    interleaved = family.interleaved_heads
    targets = [
        Target("model.embed_tokens.weight", "token_embd.weight", (vocabulary, hidden)),
        Target("model.norm.weight", "output_norm.weight", (hidden,)),
    ]
    if not tied:
        targets.append(Target("lm_head.weight", "output.weight", (vocabulary, hidden)))
    for layer in range(layers):
        to, of = f"model.layers.{layer}.", f"blk.{layer}."
        attention = [
            ("q_proj", "attn_q", query, heads),
            ("k_proj", "attn_k", key, kv_heads),
            ("v_proj", "attn_v", key, 0),
        ]
        for name, source, rows, pairs in attention:
            pairs = pairs if interleaved else 0
            targets.append(Target(f"{to}self_attn.{name}.weight", f"{of}{source}.weight", (rows, hidden), pairs))
            if biased:
                targets.append(Target(f"{to}self_attn.{name}.bias", f"{of}{source}.bias", (rows,), pairs))
        if family.head_norms:
            targets.append(Target(f"{to}self_attn.q_norm.weight", f"{of}attn_q_norm.weight", (head_size,)))
            targets.append(Target(f"{to}self_attn.k_norm.weight", f"{of}attn_k_norm.weight", (head_size,)))
        targets += [
            Target(f"{to}self_attn.o_proj.weight", f"{of}attn_output.weight", (hidden, query)),
            Target(f"{to}mlp.gate_proj.weight", f"{of}ffn_gate.weight", (inner, hidden)),
            Target(f"{to}mlp.up_proj.weight", f"{of}ffn_up.weight", (inner, hidden)),
            Target(f"{to}mlp.down_proj.weight", f"{of}ffn_down.weight", (hidden, inner)),
            Target(f"{to}input_layernorm.weight", f"{of}attn_norm.weight", (hidden,)),
            Target(f"{to}post_attention_layernorm.weight", f"{of}ffn_norm.weight", (hidden,)),
        ]
    _check_sources(gguf, targets)
    return config, sorted(targets, key=lambda target: target.name)


def split_pairs(weight: np.ndarray, heads: int) -> np.ndarray:
    """Undoes GGUF's order of a rotary head: (pair, half) rows become (half, pair)."""
    pairs = weight.shape[0] // heads // 2
    return weight.reshape(heads, pairs, 2, -1).swapaxes(1, 2).reshape(weight.shape)


def _check_sources(gguf: GgufFile, targets: list[Target]) -> None:
    wanted = set()
    for target in targets:
        source = gguf.tensors.get(target.source)
        if source is None:
            raise ImportRefused(f'tensor "{target.source}" is missing')
        if source.shape != target.shape:
            raise ImportRefused(
                f'tensor "{target.source}" has shape {list(source.shape)}, but its config says {list(target.shape)}'
            )
        wanted.add(target.source)
    for name in gguf.tensors:
        if name not in wanted and not name.startswith("rope_freqs"):
            raise ImportRefused(f'tensor "{name}" has no place in this architecture')


def _size(gguf: GgufFile, key: str, default: int | None = None) -> int:
    full = f"{gguf.metadata['general.architecture']}.{key}"
    value = gguf.metadata.get(full, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1 or value > 1 << 31:
        raise ImportRefused(f'"{full}" is {value!r}, which is not a size'[:200])
    return value


def _number(gguf: GgufFile, key: str, default: float) -> float:
    full = f"{gguf.metadata['general.architecture']}.{key}"
    value = gguf.metadata.get(full, default)
    if not isinstance(value, (int, float)) or not np.isfinite(value) or value <= 0:
        raise ImportRefused(f'"{full}" is {value!r}, which is not a positive number'[:200])
    # GGUF has float32: 1e-05 arrives as 9.999999747378752e-06. The shortest form is the one meant.
    return float(str(np.float32(value)))


def _rope_scaling(gguf: GgufFile, config: dict[str, Any]) -> dict[str, Any] | None:
    architecture = gguf.metadata["general.architecture"]
    if "rope_freqs.weight" in gguf.tensors:
        return _llama3_scaling(gguf, config)
    kind = gguf.metadata.get(f"{architecture}.rope.scaling.type", "none")
    if kind == "none":
        return None
    factor = _number(gguf, "rope.scaling.factor", 1.0)
    if kind == "linear":
        return {"rope_type": "linear", "factor": factor}
    if kind == "yarn":
        original = _size(gguf, "rope.scaling.original_context_length", config["max_position_embeddings"])
        return {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": original}
    raise ImportRefused(f'rotary scaling of type "{kind}" is not supported')


def _llama3_scaling(gguf: GgufFile, config: dict[str, Any]) -> dict[str, Any]:
    """GGUF holds Llama 3's scaling as finished factors; find the parameters that give just these."""
    tensor = gguf.tensors["rope_freqs.weight"]
    half = config["head_dim"] // 2
    if tensor.shape != (half,) or tensor.kind.name != "F32":
        raise ImportRefused('tensor "rope_freqs.weight" does not fit the head size')
    factors = gguf.raw(tensor).view(np.float32)
    factor = float(factors.max())
    scaling = {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    wavelength = 2 * np.pi * config["rope_theta"] ** (np.arange(half) / half)
    smooth = np.clip((8192 / wavelength - 1.0) / 3.0, 0, 1)
    expected = 1 / ((1 - smooth) / factor + smooth)
    if not np.allclose(factors, expected, rtol=1e-3):
        raise ImportRefused('the rotary factors in "rope_freqs.weight" follow no known rule')
    return scaling
