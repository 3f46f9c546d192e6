"""Tries, at load, whether rows of unequal length give the same results together as alone. mlx-lm's gemma2
does not: its mask meets scores of another rank, which raises for most sizes and is silently wrong when
there are as many rows as KV heads. A model that fails is served one row per micro-batch."""

import copy
import sys
from typing import Any

import mlx.core as mx

from .stage import Stage
from .stage_rows import padded, read_padded

ROWS_MAX = 16
NEXT = 5  # any token, fed to every row after its prompt
# Relative error of the logits. Wrong masks give 0.3 and more. Low precision gives about 0.01 by itself, and
# more where a router is undecided between two experts.
TOLERANCE = {mx.float32: 0.01}
TOLERANCE_LOW = 0.1


def rows_agree(stage: Stage, vocabulary: int, kv_heads: int) -> bool:
    prompts = [_prompt(3, vocabulary), _prompt(8, vocabulary)]
    filled = [_filled(stage, prompt) for prompt in prompts]
    alone = [_alone(stage, prompt, copy.deepcopy(caches)) for prompt, caches in zip(prompts, filled)]
    for count in sorted({2, min(max(kv_heads, 2), ROWS_MAX)}):
        chosen = [index % 2 for index in range(count)]
        try:
            rows = [copy.deepcopy(filled[index]) for index in chosen]
            first, second = _together(stage, [prompts[index] for index in chosen], rows)
            errors = [_error(first[row], alone[index][0]) for row, index in enumerate(chosen)]
            errors += [_error(second[row], alone[index][1]) for row, index in enumerate(chosen[1:])]
        except Exception as error:
            return _refuse(f"cannot share a step ({type(error).__name__})")
        if not max(errors) <= TOLERANCE.get(first.dtype, TOLERANCE_LOW):  # also when it is not a number
            return _refuse(f"differ together from alone by {max(errors):.3f}")
    return True


def prompts_agree(stage: Stage, vocabulary: int) -> bool:
    """Whether prompts of unequal length may be read in one pass."""
    prompts = [_prompt(3, vocabulary), _prompt(8, vocabulary)]
    try:
        read = [prompt[:-1] for prompt in prompts]
        _, caches = read_padded(stage, [len(tokens) for tokens in read], entering(stage, padded(read)))
        mx.eval([cache.state for cache in caches])
        for index, prompt in enumerate(prompts):
            wanted = _step(stage, [prompt[-1]], _filled(stage, prompt))
            got = _step(stage, [prompt[-1]], [cache.extract(index) for cache in caches])
            error = _error(got[0], wanted[0])
            if not error <= TOLERANCE.get(wanted.dtype, TOLERANCE_LOW):
                raise ValueError(f"off by {error:.3f}")
    except Exception as error:
        print(f"prompts are read one by one: {type(error).__name__} {error}"[:200], file=sys.stderr, flush=True)
        return False
    return True


def _refuse(reason: str) -> bool:
    print(f"rows {reason}; each gets its own micro-batch", file=sys.stderr, flush=True)
    return False


def _prompt(length: int, vocabulary: int) -> list[int]:
    return [(7 + 31 * index) % min(vocabulary, 500) for index in range(length)]


def _filled(stage: Stage, prompt: list[int]) -> list[Any]:
    caches = stage.new_caches()
    stage(entering(stage, mx.array([prompt[:-1]])), caches)
    mx.eval([cache.state for cache in caches])
    return caches


def _step(stage: Stage, tokens: list[int], caches: list[Any]) -> mx.array:
    leaving = stage(entering(stage, mx.array(tokens)[:, None]), caches)[:, -1]
    mx.eval(leaving)
    return leaving


def entering(stage: Stage, ids: mx.array) -> mx.array:
    """What enters a stage for these ids: a later one gets invented hidden states, alike for the same id."""
    if stage.first:
        return ids
    shape, dtype = stage.entering
    table = mx.random.normal((500, *shape[2:]), key=mx.random.key(11)).astype(dtype)
    return table[ids % 500]


def _alone(stage: Stage, prompt: list[int], caches: list[Any]) -> tuple[mx.array, mx.array]:
    return _step(stage, [prompt[-1]], caches)[0], _step(stage, [NEXT], caches)[0]


def _together(stage: Stage, prompts: list[list[int]], rows: list[list[Any]]) -> tuple[mx.array, mx.array]:
    """All rows make a step; the first leaves; the others make another."""
    caches = [column[0].merge(list(column)) for column in zip(*rows)]
    first = _step(stage, [prompt[-1] for prompt in prompts], caches)
    if len(prompts) == 2:
        caches = [cache.extract(1) for cache in caches]
    else:
        for cache in caches:
            cache.filter(mx.array(list(range(1, len(prompts)))))
    return first, _step(stage, [NEXT] * (len(prompts) - 1), caches)


def _error(got: mx.array, wanted: mx.array) -> float:
    got, wanted = got.astype(mx.float32), wanted.astype(mx.float32)
    scale = mx.maximum(mx.linalg.norm(wanted - mx.mean(wanted)), 1e-6)
    return float(mx.linalg.norm(got - wanted) / scale)
