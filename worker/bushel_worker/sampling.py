"""Draws one token for every row of a micro-batch, in one go.

The order is: the model's logits → logit_bias → penalties → grammar → temperature → top_k, top_p, min_p → the
largest of logit + Gumbel noise. The noise depends on (seed, position) alone, so a resumed attempt
draws what the unbroken one would have drawn. Repetition penalty is over prompt and answer (as
Hugging Face has it), presence and frequency penalty over the answer alone (as OpenAI has it).
Reported log probabilities are the model's own: before bias, penalties and temperature.

Everything stays on the device and is lazy, with one exception. top_k and top_p need the largest
logits in order. On a CPU, MLX sorts 49k values in 5 ms per row and numpy in 0.2 ms, so there the
cut-offs are found by numpy; the device waits a moment for them.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from .masks import mask_rows
from .rows import Draw, Row

CANDIDATES = 512  # looked at first for top_p; all are, when these do not hold enough of the mass


def noise_key(seed: int, position: int) -> tuple[int, int]:
    digest = hashlib.blake2b(seed.to_bytes(8, "little") + position.to_bytes(8, "little"), digest_size=8).digest()
    return int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")


class History:
    """Which tokens a row has seen (prompt and answer), and how often in the answer."""

    def __init__(self, prompt: Sequence[int]) -> None:
        distinct = sorted(set(prompt))
        self._place = {token: index for index, token in enumerate(distinct)}
        self.tokens = np.array(distinct, np.int32)
        self.counts = np.zeros(len(distinct), np.float32)
        self._size = len(distinct)
        self._read = 0

    def catch_up(self, ids: list[int]) -> None:
        for token in ids[self._read :]:
            place = self._place.setdefault(token, self._size)
            if place == self._size:
                if self._size == len(self.tokens):
                    self.tokens = np.concatenate([self.tokens, np.zeros(256, np.int32)])
                    self.counts = np.concatenate([self.counts, np.zeros(256, np.float32)])
                self.tokens[place] = token
                self._size += 1
            self.counts[place] += 1
        self._read = len(ids)

    def seen(self) -> tuple[np.ndarray, np.ndarray]:
        return self.tokens[: self._size], self.counts[: self._size]


def host_cutoffs(scaled: np.ndarray, rows: Sequence[Row]) -> np.ndarray:
    """The lowest logit that each row may still draw, (rows, 1). `scaled` has the temperature in it."""
    lowest = [_cutoff(values, row) for values, row in zip(scaled, rows)]
    return np.array(lowest, np.float32)[:, None]


def _cutoff(values: np.ndarray, row: Row) -> float:
    asked, top = row.sampling, float(values.max())
    low = top + float(np.log(asked.min_p)) if asked.min_p > 0 else -np.inf
    if 0 < asked.top_k < len(values):
        best = np.partition(values, -asked.top_k)[-asked.top_k :]
        mass = None
    elif asked.top_p < 1:
        best = np.partition(values, -CANDIDATES)[-CANDIDATES:] if len(values) > CANDIDATES else values
        mass = float(np.exp(values - top).sum(dtype=np.float64))
        if float(np.exp(best - top).sum(dtype=np.float64)) < asked.top_p * mass:
            best = values
    else:
        return low
    best = np.sort(best)[::-1]
    low = max(low, float(best[-1])) if mass is None else low
    if asked.top_p < 1:
        summed = np.cumsum(np.exp(best - top), dtype=np.float64)
        wanted = asked.top_p * (summed[-1] if mass is None else mass)
        low = max(low, float(best[min(int(np.searchsorted(summed, wanted)), len(best) - 1)]))
    return low


class SamplingPlan:
    """What is constant for one set of rows: built when rows join or leave, used at every step."""

    def __init__(self, rows: list[Row], on_cpu: bool) -> None:
        self.rows, self._on_cpu = rows, on_cpu
        asked = [row.sampling for row in rows]
        self._drawn = [index for index, sampling in enumerate(asked) if sampling.temperature > 0]
        self._cut = [i for i in self._drawn if asked[i].top_k > 0 or asked[i].top_p < 1 or asked[i].min_p > 0]
        self._penalised = [
            index
            for index, s in enumerate(asked)
            if s.repetition_penalty != 1 or s.presence_penalty != 0 or s.frequency_penalty != 0
        ]
        self._bound = [index for index, row in enumerate(rows) if row.constraint is not None]
        self._bound_at = mx.array(self._bound, mx.int32) if self._bound else None
        self._told = [index for index, row in enumerate(rows) if row.logprobs is not None]
        self._top = max((rows[index].logprobs or 0 for index in self._told), default=0)

        biased = [(index, token, bias) for index, s in enumerate(asked) for token, bias in s.logit_bias]
        self._bias = None
        if biased:
            places, tokens, values = zip(*biased)
            self._bias = (mx.array(places), mx.array(tokens), mx.array(values, mx.float32))
        everyone = len(self._drawn) == len(rows)
        self._drawn_at = None if everyone else mx.array(self._drawn, mx.int32)
        self._cut_at = (
            None if len(self._cut) == len(self._drawn) else mx.array([self._drawn.index(i) for i in self._cut])
        )
        self._told_at = None if len(self._told) == len(rows) else mx.array(self._told, mx.int32)
        self._temperature = mx.array([[asked[i].temperature] for i in self._drawn], mx.float32) if self._drawn else None
        if self._cut and not on_cpu:
            chosen = [asked[i] for i in self._cut]
            self._top_k = mx.array([[s.top_k] for s in chosen], mx.int32)
            self._top_p = mx.array([[s.top_p] for s in chosen], mx.float32)
            self._min_p = mx.log(mx.array([[s.min_p] for s in chosen], mx.float32))

    def draw(self, logits: mx.array) -> tuple[mx.array, ...]:
        """Lazy: the tokens (rows,), then, where any row wants them, log probabilities. `logits` is (rows, V)."""
        original = logits
        if self._bias is not None or self._penalised:
            logits = logits.astype(mx.float32)
        if self._bias is not None:
            places, tokens, values = self._bias
            logits = logits.at[places, tokens].add(values)
        if self._penalised:
            logits = self._with_penalties(logits)
        if self._bound:
            logits = self._with_grammars(logits)
        tokens = self._choose(logits)
        return (tokens, *self._log_probabilities(original, tokens)) if self._told else (tokens,)

    def read(self, drawn: tuple[mx.array, ...]) -> list[Draw]:
        """Waits for the drawn tokens."""
        values: list[Any] = [array.tolist() for array in drawn]
        tokens = values[0]
        if not self._told:
            return [Draw(row, token) for row, token in zip(self.rows, tokens)]
        chosen = dict(zip(self._told, values[1]))
        best: dict[int, list[tuple[int, float]]] = {index: [] for index in self._told}
        if self._top:
            for index, names, known in zip(self._told, values[2], values[3]):
                best[index] = list(zip(names, known))[: self.rows[index].logprobs]
        return [Draw(row, token, chosen.get(i), best.get(i)) for i, (row, token) in enumerate(zip(self.rows, tokens))]

    def _choose(self, logits: mx.array) -> mx.array:
        if self._temperature is None:
            return mx.argmax(logits, axis=-1)
        scaled = (logits if self._drawn_at is None else logits[self._drawn_at]).astype(mx.float32) / self._temperature
        if self._cut:
            some = scaled if self._cut_at is None else scaled[self._cut_at]
            low = self._cutoffs(some)
            some = mx.where(some >= low, some, -mx.inf)
            if self._cut_at is None:
                scaled = some
            else:
                scaled[self._cut_at] = some
        size = logits.shape[-1]
        keys = [noise_key(self.rows[i].sampling.seed, len(self.rows[i].ids)) for i in self._drawn]
        noise = mx.vmap(lambda key: mx.random.gumbel((size,), key=key))(mx.array(keys, mx.uint32))
        chosen = mx.argmax(scaled + noise, axis=-1)
        if self._drawn_at is None:
            return chosen
        tokens = mx.argmax(logits, axis=-1)
        tokens[self._drawn_at] = chosen
        return tokens

    def _cutoffs(self, scaled: mx.array) -> mx.array:
        if self._on_cpu:
            return mx.array(host_cutoffs(np.array(scaled, copy=False), [self.rows[i] for i in self._cut]))
        size = scaled.shape[-1]
        ordered = mx.sort(scaled, axis=-1)[:, ::-1]
        rank = mx.arange(size)[None]
        within = (rank < self._top_k) | (self._top_k == 0)
        odds = mx.where(within, mx.exp(ordered - ordered[:, :1]), 0)
        before = mx.cumsum(odds, axis=-1) - odds
        kept = within & ((before < self._top_p * mx.sum(odds, axis=-1, keepdims=True)) | (self._top_p >= 1))
        last = mx.maximum(mx.sum(kept, axis=-1, keepdims=True) - 1, 0)
        return mx.maximum(mx.take_along_axis(ordered, last, axis=-1), ordered[:, :1] + self._min_p)

    def _with_penalties(self, logits: mx.array) -> mx.array:
        places, tokens, factors, losses = [], [], [], []
        for index in self._penalised:
            row, asked = self.rows[index], self.rows[index].sampling
            if row.history is None:
                row.history = History(row.prompt)
            row.history.catch_up(row.ids)
            seen, counts = row.history.seen()
            places.append(np.full(len(seen), index, np.int32))
            tokens.append(seen)
            factors.append(np.full(len(seen), asked.repetition_penalty, np.float32))
            losses.append(asked.presence_penalty * (counts > 0) + asked.frequency_penalty * counts)
        at, of = mx.array(np.concatenate(places)), mx.array(np.concatenate(tokens))
        factor, loss = mx.array(np.concatenate(factors)), mx.array(np.concatenate(losses).astype(np.float32))
        was = logits[at, of]
        becomes = mx.where(was > 0, was / factor, was * factor) - loss
        return logits.at[at, of].add(becomes - was)

    def _with_grammars(self, logits: mx.array) -> mx.array:
        """Rows of a grammar keep the tokens it allows. The masks are made here, on the host, while a device
        that works by itself still computes these logits."""
        bound = [(self.rows[index].constraint, self.rows[index].ids) for index in self._bound]
        allowed = mx.array(mask_rows(bound, logits.shape[-1]))
        if len(self._bound) == len(self.rows):
            return mx.where(allowed, logits, -mx.inf)
        logits[self._bound_at] = mx.where(allowed, logits[self._bound_at], -mx.inf)
        return logits

    def _log_probabilities(self, logits: mx.array, tokens: mx.array) -> tuple[mx.array, ...]:
        rows = (logits if self._told_at is None else logits[self._told_at]).astype(mx.float32)
        mine = tokens if self._told_at is None else tokens[self._told_at]
        known = rows - mx.logsumexp(rows, axis=-1, keepdims=True)
        chosen = mx.take_along_axis(known, mine[:, None], axis=-1)[:, 0]
        if not self._top:
            return (chosen,)
        names = mx.argpartition(known, -self._top, axis=-1)[:, -self._top :]
        values = mx.take_along_axis(known, names, axis=-1)
        order = mx.argsort(-values, axis=-1)
        return chosen, mx.take_along_axis(names, order, axis=-1), mx.take_along_axis(values, order, axis=-1)
