"""Embedding and head cut by vocabulary: with a tied head of a small model they are a fifth of the weights,
and reading them is a fifth of each step. A rank looks up the tokens it has and the results are added; it
computes the logits of its tokens and they are put side by side on every rank."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn

from .parts import Parts
from .shares import CannotShare, Cuts, cut, sizes
from .slices import Group, keep_outputs, is_linear, out_size

UNIT = 16  # tokens: odd widths are slow to multiply


class VocabularyPart(nn.Module):
    """An embedding, a head, or both."""

    def __init__(self, inner: nn.Module, cuts: Cuts, group: Group, parts: Parts) -> None:
        super().__init__()
        rank = group.rank()
        self._start, self._end = cuts[rank], cuts[rank + 1]
        self._sizes, self._group = sizes(cuts), group
        keep_outputs(inner, [(self._start, self._end)], parts)
        self.inner = inner


class EmbeddingPart(VocabularyPart):
    def __call__(self, ids: mx.array) -> mx.array:
        mine = (ids >= self._start) & (ids < self._end)
        found = self.inner(mx.where(mine, ids - self._start, 0))
        return mx.distributed.all_sum(mx.where(mine[..., None], found, 0), group=self._group)

    def as_linear(self, x: mx.array) -> mx.array:
        return _side_by_side(self.inner.as_linear(x), self._sizes, self._group)


class HeadPart(VocabularyPart):
    def __call__(self, x: mx.array) -> mx.array:
        return _side_by_side(self.inner(x), self._sizes, self._group)


def _side_by_side(logits: mx.array, widths: list[int], group: Group) -> mx.array:
    """Gathering needs the same shape on every rank and joins along the first axis."""
    widest = max(widths)
    missing = widest - logits.shape[-1]
    turned = mx.contiguous(logits.reshape(-1, logits.shape[-1]).T)
    if missing:
        turned = mx.pad(turned, [(0, missing), (0, 0)])
    gathered = mx.distributed.all_gather(turned, group=group)
    if widest > min(widths):
        gathered = mx.concatenate([gathered[r * widest : r * widest + width] for r, width in enumerate(widths)])
    return gathered.T.reshape(*logits.shape[:-1], sum(widths))


EMBEDDINGS = ("embed_tokens", "tok_embeddings", "word_embeddings", "wte")
HEADS = ("lm_head", "output")


def share_vocabulary(
    model: nn.Module, ends: tuple[bool, bool], group: Group, wanted: list[float], parts: Parts
) -> list[nn.Module]:
    """Cuts the embedding and the head of a model where they are what they usually are, as far as a stage needs
    them that is the `(first, last)` one. Returns what has been put in their place."""
    first, last = ends
    held = {id(module) for layer in model.layers for module in layer.modules()}
    owners = [(owner, name) for owner in model.modules() if id(owner) not in held for name in owner.children()]
    heads = [(owner, name) for owner, name in owners if name in HEADS and is_linear(owner[name])]
    embeddings = [
        (owner, name)
        for owner, name in owners
        if name in EMBEDDINGS and type(owner[name]) in (nn.Embedding, nn.QuantizedEmbedding)
    ]
    made: list[nn.Module] = []
    for owner, name in embeddings if first or (last and not heads) else []:
        owner[name] = EmbeddingPart(owner[name], _cuts(owner[name], wanted), group, parts)
        made.append(owner[name])
    for owner, name in heads if last else []:
        owner[name] = HeadPart(owner[name], _cuts(owner[name], wanted), group, parts)
        made.append(owner[name])
    return made


def _cuts(module: Any, wanted: list[float]) -> Cuts:
    count = out_size(module)
    try:
        return cut(count, wanted, UNIT)
    except CannotShare:
        return cut(count, wanted)
