"""The encoder itself. Its parts are called as in BERT's files, so that tensors are found by their names.

A text is read alone, so nothing is padded and nothing masked. Attention is computed for a run of queries at a
time: each of them sees all keys, so the result is the same, and a long text needs no square of its length."""

from collections.abc import Callable, Iterator

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten

from .families import Shape

_ACTIVATIONS: dict[str, Callable[[mx.array], mx.array]] = {
    "gelu": nn.gelu,
    "gelu_new": nn.gelu_approx,
    "gelu_pytorch_tanh": nn.gelu_approx,
    "relu": nn.relu,
    "silu": nn.silu,
}


class _Embeddings(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(shape.vocabulary, shape.hidden)
        self.position_embeddings = nn.Embedding(shape.positions, shape.hidden)
        if shape.kinds:
            self.token_type_embeddings = nn.Embedding(shape.kinds, shape.hidden)
        self.LayerNorm = nn.LayerNorm(shape.hidden, eps=shape.epsilon)
        self._first = shape.first_position

    def __call__(self, ids: mx.array) -> mx.array:
        places = mx.arange(self._first, self._first + ids.shape[-1])
        summed = self.word_embeddings(ids) + self.position_embeddings(places)
        if "token_type_embeddings" in self:  # a text alone is all of the first kind
            summed = summed + self.token_type_embeddings(mx.zeros_like(ids))
        return self.LayerNorm(summed)


class _SelfAttention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.query = nn.Linear(shape.hidden, shape.hidden)
        self.key = nn.Linear(shape.hidden, shape.hidden)
        self.value = nn.Linear(shape.hidden, shape.hidden)
        self._heads, self._width = shape.heads, shape.hidden // shape.heads

    def __call__(self, states: mx.array, queries_max: int) -> mx.array:
        asking, keys, values = (self._split(part(states)) for part in (self.query, self.key, self.value))
        scale = self._width**-0.5
        found = [
            mx.fast.scaled_dot_product_attention(asking[:, :, at : at + queries_max], keys, values, scale=scale)
            for at in range(0, states.shape[1], queries_max)
        ]
        joined = found[0] if len(found) == 1 else mx.concatenate(found, axis=2)
        return joined.transpose(0, 2, 1, 3).reshape(states.shape)

    def _split(self, states: mx.array) -> mx.array:
        return states.reshape(*states.shape[:2], self._heads, self._width).transpose(0, 2, 1, 3)


class _Output(nn.Module):
    """Back into the stream: added to what came in, then normalised."""

    def __init__(self, entering: int, shape: Shape) -> None:
        super().__init__()
        self.dense = nn.Linear(entering, shape.hidden)
        self.LayerNorm = nn.LayerNorm(shape.hidden, eps=shape.epsilon)

    def __call__(self, made: mx.array, stream: mx.array) -> mx.array:
        return self.LayerNorm(self.dense(made) + stream)


class _Intermediate(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.dense = nn.Linear(shape.hidden, shape.inner)


class _Attention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        setattr(self, "self", _SelfAttention(shape))  # noqa: B010  (BERT calls it so)
        self.output = _Output(shape.hidden, shape)

    def __call__(self, states: mx.array, queries_max: int) -> mx.array:
        return self.output(self["self"](states, queries_max), states)


class _Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention = _Attention(shape)
        self.intermediate = _Intermediate(shape)
        self.output = _Output(shape.inner, shape)
        self._activation = _ACTIVATIONS[shape.activation]

    def __call__(self, states: mx.array, queries_max: int) -> mx.array:
        attended = self.attention(states, queries_max)
        return self.output(self._activation(self.intermediate.dense(attended)), attended)


class _Layers(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.layer = [_Layer(shape) for _ in range(shape.layers)]


class Encoder(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embeddings = _Embeddings(shape)
        self.encoder = _Layers(shape)

    def states(self, ids: list[int], queries_max: int) -> Iterator[mx.array]:
        """The states after each layer; the last are the answer. Nothing is evaluated here."""
        states = self.embeddings(mx.array([ids]))
        for layer in self.encoder.layer:
            states = layer(states, queries_max)
            yield states

    def groups(self) -> list[list[mx.array]]:
        """Its parameters in the order in which they are read from the disk."""
        parts = [self.embeddings, *self.encoder.layer]
        return [[array for _, array in tree_flatten(part.parameters())] for part in parts]
