"""Small random encoders as folders, and what BERT's paper says they give, computed with numpy alone."""

import json
import math
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] a cat sat on the mat rain fell all day . , ##s ##ing who what".split()
SHAPE = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}

Tensors = dict[str, np.ndarray]


def random_tensors(config: dict[str, Any], seed: int) -> Tensors:
    """Under BERT's names."""
    rng = np.random.default_rng(seed)
    hidden, inner = config["hidden_size"], config["intermediate_size"]

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    tensors = {
        "embeddings.word_embeddings.weight": normal(config["vocab_size"], hidden),
        "embeddings.position_embeddings.weight": normal(config["max_position_embeddings"], hidden),
    }
    if config.get("type_vocab_size"):
        tensors["embeddings.token_type_embeddings.weight"] = normal(config["type_vocab_size"], hidden)
    sizes = {
        "attention.self.query": (hidden, hidden),
        "attention.self.key": (hidden, hidden),
        "attention.self.value": (hidden, hidden),
        "attention.output.dense": (hidden, hidden),
        "intermediate.dense": (inner, hidden),
        "output.dense": (hidden, inner),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(config["num_hidden_layers"]):
        root = f"encoder.layer.{layer}."
        norms += [root + "attention.output.LayerNorm", root + "output.LayerNorm"]
        for name, shape in sizes.items():
            tensors[f"{root}{name}.weight"], tensors[f"{root}{name}.bias"] = normal(*shape), normal(shape[0])
    for name in norms:
        tensors[f"{name}.weight"], tensors[f"{name}.bias"] = 1 + normal(hidden), normal(hidden)
    return tensors


def write_encoder(
    folder: Path, kind: str = "bert", pooling: str | None = "mean", prefix: str = "", seed: int = 1, **changes: Any
) -> tuple[dict[str, Any], Tensors]:
    """With a tokenizer of a few words. Gives back the config and the tensors, under BERT's names."""
    folder.mkdir(parents=True, exist_ok=True)
    config: dict[str, Any] = {
        "model_type": kind,
        **SHAPE,
        "vocab_size": len(WORDS),
        "max_position_embeddings": 64,
        "layer_norm_eps": 1e-12,
        "hidden_act": "gelu",
        "pad_token_id": 0,
        **({} if kind == "distilbert" else {"type_vocab_size": 2}),
        **changes,
    }
    tensors = random_tensors(config, seed)
    written = {prefix + name: mx.array(value) for name, value in tensors.items()}
    written["pooler.dense.weight"] = mx.zeros((4, 4))
    mx.save_safetensors(str(folder / "model.safetensors"), written)
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer = Tokenizer(models.WordPiece({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))
    special = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    told = {"tokenizer_class": "PreTrainedTokenizerFast", "mask_token": "[MASK]", **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(told))
    if pooling is not None:
        (folder / "1_Pooling").mkdir(exist_ok=True)
        fields = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "lasttoken": "lasttoken"}
        modes = {f"pooling_mode_{field}": name == pooling for name, field in fields.items()}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, **modes}))
    return config, tensors


def states_of(config: dict[str, Any], tensors: Tensors, ids: list[int], first: int = 0) -> np.ndarray:
    """The last layer's states, in double precision."""
    wide = {name: value.astype(np.float64) for name, value in tensors.items()}

    def linear(name: str, entering: np.ndarray) -> np.ndarray:
        return entering @ wide[f"{name}.weight"].T + wide[f"{name}.bias"]

    def norm(name: str, entering: np.ndarray) -> np.ndarray:
        centred = entering - entering.mean(-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(-1, keepdims=True) + config["layer_norm_eps"])
        return centred / spread * wide[f"{name}.weight"] + wide[f"{name}.bias"]

    states = wide["embeddings.word_embeddings.weight"][ids]
    states = states + wide["embeddings.position_embeddings.weight"][first : first + len(ids)]
    if "embeddings.token_type_embeddings.weight" in wide:
        states = states + wide["embeddings.token_type_embeddings.weight"][0]
    states = norm("embeddings.LayerNorm", states)
    heads = config["num_attention_heads"]
    for layer in range(config["num_hidden_layers"]):
        root = f"encoder.layer.{layer}."
        parts = [linear(f"{root}attention.self.{name}", states) for name in ("query", "key", "value")]
        query, key, value = (part.reshape(len(ids), heads, -1).transpose(1, 0, 2) for part in parts)
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        attended = (weights @ value).transpose(1, 0, 2).reshape(len(ids), -1)
        attended = norm(f"{root}attention.output.LayerNorm", linear(f"{root}attention.output.dense", attended) + states)
        inner = linear(f"{root}intermediate.dense", attended)
        inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        states = norm(f"{root}output.LayerNorm", linear(f"{root}output.dense", inner) + attended)
    return states
