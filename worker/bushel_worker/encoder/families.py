"""Which encoders are known, how they differ, and what their tensors are called. A family is data: where it begins
to count positions, and which names of its own stand for the names that `model` uses (those of BERT)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..folder import ModelRefused


@dataclass(frozen=True)
class Family:
    counts_behind_padding: bool = False  # its first position is the one behind the id of the padding token
    config_names: Mapping[str, str] = field(default_factory=dict)
    tensor_names: tuple[tuple[str, str], ...] = ()  # patterns and what they become, all tried in order


_DISTILLED = Family(
    config_names={
        "hidden_size": "dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "intermediate_size": "hidden_dim",
        "hidden_act": "activation",
    },
    tensor_names=(
        (r"^transformer\.layer\.", "encoder.layer."),
        (r"\.attention\.([qkv])_lin\.", r".attention.self.\1_lin."),
        (r"\.q_lin\.", ".query."),
        (r"\.k_lin\.", ".key."),
        (r"\.v_lin\.", ".value."),
        (r"\.attention\.out_lin\.", ".attention.output.dense."),
        (r"\.sa_layer_norm\.", ".attention.output.LayerNorm."),
        (r"\.ffn\.lin1\.", ".intermediate.dense."),
        (r"\.ffn\.lin2\.", ".output.dense."),
        (r"\.output_layer_norm\.", ".output.LayerNorm."),
    ),
)

FAMILIES: Mapping[str, Family] = {
    "bert": Family(),
    "roberta": Family(counts_behind_padding=True),
    "xlm-roberta": Family(counts_behind_padding=True),
    "camembert": Family(counts_behind_padding=True),
    "distilbert": _DISTILLED,
}

# What models trained for something else carry beside the encoder, and what older files hold although it is computed.
_OTHERS = re.compile(r"^(pooler|cls|classifier|lm_head|vocab_\w+|qa_outputs)\.|position_ids$")
_ROOTS = re.compile(r"^(bert|roberta|camembert|distilbert|model|0\.auto_model)\.")


@dataclass(frozen=True)
class Shape:
    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    kinds: int  # token types; 0 where there are none
    first_position: int
    epsilon: float
    activation: str

    @property
    def tokens_max(self) -> int:
        return self.positions - self.first_position


def is_encoder(config: dict[str, Any]) -> bool:
    return config.get("model_type") in FAMILIES


def shape_of(config: dict[str, Any]) -> Shape:
    """Raises ModelRefused."""
    family = FAMILIES[config["model_type"]]
    trained = " ".join(map(str, config.get("architectures") or ()))
    if re.search(r"For(Sequence|Token)Classification|ForQuestionAnswering|ForMultipleChoice|LMHeadModel", trained):
        raise ModelRefused(f"it is a {trained}, which was not trained to embed; its vectors would mislead")
    kind = config.get("position_embedding_type") or "absolute"
    if kind != "absolute":
        raise ModelRefused(f'its positions are "{kind}"; only absolute ones are supported for {config["model_type"]}')
    if config.get("is_decoder"):
        raise ModelRefused("it is a decoder (is_decoder), not an encoder")

    def number(name: str) -> int:
        value = config.get(family.config_names.get(name, name))
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ModelRefused(f'its config has no usable "{family.config_names.get(name, name)}"')
        return value

    padding = config.get("pad_token_id")
    padding = padding if isinstance(padding, int) and padding >= 0 else 1
    activation = str(config.get(family.config_names.get("hidden_act", "hidden_act"), "gelu"))
    if activation not in ("gelu", "relu", "gelu_new", "gelu_pytorch_tanh", "silu"):
        raise ModelRefused(f'its activation "{activation}" is not known')
    shape = Shape(
        hidden=number("hidden_size"),
        layers=number("num_hidden_layers"),
        heads=number("num_attention_heads"),
        inner=number("intermediate_size"),
        vocabulary=number("vocab_size"),
        positions=number("max_position_embeddings"),
        kinds=int(config.get("type_vocab_size") or 0),
        first_position=padding + 1 if family.counts_behind_padding else 0,
        epsilon=float(config.get("layer_norm_eps") or 1e-12),
        activation=activation,
    )
    if shape.hidden % shape.heads != 0 or shape.tokens_max < 2:
        raise ModelRefused("the sizes in its config do not go together")
    return shape


def tensor_name(family: Family, name: str) -> str | None:
    """As `model` calls it; None for what it has no use for."""
    name = _ROOTS.sub("", name)
    if _OTHERS.search(name):
        return None
    for pattern, becomes in family.tensor_names:
        name = re.sub(pattern, becomes, name)
    # Files from older frameworks.
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
