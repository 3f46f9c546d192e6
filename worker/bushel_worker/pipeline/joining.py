"""What the last stage is told of a row when it joins a micro-batch: its sampling, as numbers."""

from dataclasses import asdict
from typing import Any

from ..frames import Sampling
from ..rows import Row
from .work import TailRow


def described(row: Row, number: int) -> dict[str, Any]:
    asked = row.sampling
    penalised = asked.repetition_penalty != 1 or asked.presence_penalty != 0 or asked.frequency_penalty != 0
    return {
        "row": number,
        "sampling": asdict(asked),
        "logprobs": row.logprobs,
        "prompt": sorted(set(row.prompt)) if asked.repetition_penalty != 1 else [],
        "ids": row.ids if penalised else len(row.ids),
        "bound": row.constraint is not None,
    }


def masks_of(rows: list[Row], numbers: list[int]) -> dict[str, str]:
    """What rows of a grammar may draw next: the head knows the grammar, the last stage gets the bits."""
    bound = [(row, number) for row, number in zip(rows, numbers) if row.constraint is not None]
    if not bound:
        return {}
    from ..masks import packed

    return {str(number): packed(row.constraint.words(row.ids)) for row, number in bound}


def tail_row(told: dict[str, Any]) -> TailRow:
    sampling = {**told["sampling"], "logit_bias": tuple((t, b) for t, b in told["sampling"]["logit_bias"])}
    ids = told["ids"]
    return TailRow(
        number=told["row"],
        sampling=Sampling(**sampling),
        prompt=told["prompt"],
        ids=[0] * ids if isinstance(ids, int) else list(ids),
        logprobs=told["logprobs"],
        constraint=_arriving() if told["bound"] else None,
    )


def _arriving() -> Any:
    from ..masks import ArrivingMask  # with numpy, which a scripted stage does without

    return ArrivingMask()
