"""Whether an architecture's experts can be shared, tried in one process: the parts of all ranks are run one
after the other and added up here instead of by a collective. (Real worlds are in test_sharing.)"""

from typing import Any

import mlx.core as mx
import mlx.nn as nn

from bushel_worker.world.experts import ExpertPart, has_experts, share_experts
from bushel_worker.world.library import PretendedGroup
from bushel_worker.world.parts import Parts
from bushel_worker.world.shares import CannotShare

PARTS = [0.5, 0.25, 0.25]
TOLERANCE = 1e-3  # of the largest logit
LENGTHS = (1, 5, 48)  # the last one is long enough for the compact form


class AddedUp(nn.Module):
    """All parts of one bank of experts."""

    def __init__(self, parts: list[ExpertPart]) -> None:
        super().__init__()
        self.parts = parts

    def __call__(self, x: mx.array, indices: mx.array) -> mx.array:
        first, *rest = [part.own(x, indices) for part in self.parts]
        return sum(rest, first)


def spread(models: list[Any]) -> Any:
    """The first of several equal models, with its experts shared as among so many ranks."""
    for rank, model in enumerate(models):
        for layer in model.layers:
            share_experts(layer, PretendedGroup(len(models), rank), PARTS, Parts())  # type: ignore[arg-type]
    added = 0
    for layers in zip(*(model.layers for model in models)):
        for owners in zip(*(list(layer.modules()) for layer in layers)):
            for name, child in list(owners[0].children().items()):
                if isinstance(child, ExpertPart):
                    owners[0][name] = AddedUp([owner[name] for owner in owners])
                    added += 1
    assert added > 0, "nothing was shared"
    return models[0]


def expert_difference(whole: Any, shared: Any, vocabulary: int) -> float:
    """Of the logits, relative to the largest."""
    worst = 0.0
    for length in LENGTHS:
        ids = mx.array([[(7 + 31 * index) % vocabulary for index in range(length)]])
        wanted, got = whole(ids), shared(ids)
        worst = max(worst, float(mx.max(mx.abs(wanted - got)) / mx.max(mx.abs(wanted))))
    return worst


def expert_verdict(name: str) -> Any:
    """For the table of architectures; None for one without experts."""
    from bench.architectures import Verdict

    from .tiny import VOCABULARY
    from .zoo import zoo_model

    try:
        whole = zoo_model(name)
        if not any(has_experts(layer) for layer in whole.layers):
            return None
        mx.eval(whole(mx.array([[1, 2, 3]])))
    except Exception:
        return None  # no tiny config: the other column says so
    try:
        difference = expert_difference(whole, spread([zoo_model(name) for _ in PARTS]), VOCABULARY)
    except CannotShare as refusal:
        return Verdict("refused", str(refusal))
    except Exception as error:
        return Verdict("fails", f"{type(error).__name__}: {str(error)[:100]}")
    return Verdict("equal" if difference < TOLERANCE else "differs", "", difference)
