"""Llamas with random weights, in shapes that nobody runs: no model that is judged later is measured here."""

from dataclasses import dataclass
from typing import Any

import mlx.core as mx
from mlx_lm.models.llama import Model, ModelArgs

VOCABULARY = 1024
HEAD_SIZE = 64
# Dependent kernels of one layer in a decode step, as src/core/plan/model/work.ts counts them for grouped attention
# and a dense block: both sides must count alike, or launch times mean nothing.
KERNELS_PER_LAYER = 18


@dataclass(frozen=True)
class Shape:
    """Few wide layers read much and launch little; many narrow ones the other way round."""

    hidden: int
    layers: int

    @property
    def name(self) -> str:
        return f"{self.layers}x{self.hidden}"

    @property
    def layer_parameters(self) -> int:
        return 4 * self.hidden**2 + 3 * self.hidden * 4 * self.hidden

    @property
    def parameters_read(self) -> int:
        """In a decode step: all layers and the head; of the embedding only one row."""
        return self.layers * self.layer_parameters + VOCABULARY * self.hidden

    @property
    def kernels(self) -> int:
        return self.layers * KERNELS_PER_LAYER


CPU_SHAPES = (Shape(1536, 4), Shape(640, 14), Shape(256, 40))
GPU_SHAPES = (Shape(6144, 6), Shape(2048, 20), Shape(1024, 48))


def build(shape: Shape, dtype: mx.Dtype) -> Any:
    heads = shape.hidden // HEAD_SIZE
    model = Model(
        ModelArgs(
            model_type="llama",
            hidden_size=shape.hidden,
            num_hidden_layers=shape.layers,
            intermediate_size=4 * shape.hidden,
            num_attention_heads=heads,
            num_key_value_heads=heads,
            rms_norm_eps=1e-5,
            vocab_size=VOCABULARY,
            tie_word_embeddings=False,
        )
    )
    model.set_dtype(dtype)
    mx.eval(model.parameters())
    return model
