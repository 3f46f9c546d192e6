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


def share_vocabulary(model: nn.Module, within: set[int], group: Group, wanted: list[float], parts: Parts) -> None:
    """Cuts the embedding and the head of a model, where they are what they usually are; `within` has the ids
    of the modules inside its layers, which are left alone."""
    for owner in [model, *(module for _, module in model.named_modules())]:
        if id(owner) in within:
            continue
        for name, child in list(owner.children().items()):
            if type(child) in (nn.Embedding, nn.QuantizedEmbedding) and name in EMBEDDINGS:
                owner[name] = EmbeddingPart(child, _cuts(child, wanted), group, parts)
            elif is_linear(child) and name in HEADS:
                owner[name] = HeadPart(child, _cuts(child, wanted), group, parts)


EMBEDDINGS = ("embed_tokens", "tok_embeddings", "word_embeddings", "wte")
HEADS = ("lm_head", "output")


def _cuts(module: Any, wanted: list[float]) -> Cuts:
    count = out_size(module)
    try:
        return cut(count, wanted, UNIT)
    except CannotShare:
        return cut(count, wanted)
