"""Sampling: keyed noise, the order of the filters, penalties, log probabilities."""

import unittest
from typing import Any

import mlx.core as mx
import numpy as np

from bushel_worker.frames import Sampling
from bushel_worker.rows import Row
from bushel_worker.sampling import SamplingPlan, host_cutoffs, noise_key
from bushel_worker.text import ByteDecoder, TextPlan, Writer

SIZE = 2000


def row(
    ids: list[int] | None = None, prompt: list[int] | None = None, logprobs: int | None = None, **asked: Any
) -> Row:
    writer = Writer(TextPlan(ByteDecoder([])))
    return Row("a", 0, prompt or [1], ids or [], 100, Sampling(**asked), writer, logprobs=logprobs)


def logits(rows: int, seed: int = 0, size: int = SIZE, width: float = 3.0) -> mx.array:
    return mx.array(np.random.default_rng(seed).normal(0, width, (rows, size)).astype(np.float32))


def draw(rows: list[Row], values: mx.array, on_cpu: bool = True) -> list[int]:
    plan = SamplingPlan(rows, on_cpu)
    return [drawn.token for drawn in plan.read(plan.draw(values))]


def allowed(values: np.ndarray, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0) -> set[int]:
    """The slow way: sort, keep, renormalise."""
    order = np.argsort(-values, kind="stable")
    if top_k:
        order = order[:top_k]
    odds = np.exp(values[order] - values[order[0]]).astype(np.float64)
    odds /= odds.sum()
    keep = np.cumsum(odds) - odds < top_p
    order, odds = order[keep], odds[keep]
    return set(order[odds >= min_p * odds[0]].tolist())


class Noise(unittest.TestCase):
    def test_noise_key_depends_on_seed_and_position(self) -> None:
        keys = {noise_key(seed, position) for seed in range(50) for position in range(50)}
        self.assertEqual(len(keys), 2500)
        self.assertEqual(noise_key(7, 3), noise_key(7, 3))
        self.assertNotEqual(noise_key(2**64 - 1, 0), noise_key(0, 0))

    def test_a_row_draws_the_same_in_any_company(self) -> None:
        values = logits(6)
        rows = [row([9] * index, temperature=1.2, seed=index) for index in range(3)]
        rows += [row(), row(temperature=0.7, top_k=5, seed=3), row([1], temperature=0.7, top_p=0.5, seed=4)]
        together = draw(rows, values)
        for index, alone in enumerate(rows):
            self.assertEqual(draw([alone], values[index : index + 1]), [together[index]])
        backwards = draw(rows[::-1], values[::-1])
        self.assertEqual(backwards[::-1], together)

    def test_positions_and_seeds_draw_differently(self) -> None:
        values = logits(1, width=0.5)
        drawn = {
            draw([row([0] * position, temperature=1.0, seed=seed)], values)[0]
            for position in range(5)
            for seed in range(5)
        }
        self.assertGreater(len(drawn), 20)

    def test_draws_follow_the_distribution(self) -> None:
        odds = np.array([0.5, 0.25, 0.15, 0.1])
        values = mx.array(np.tile(np.log(odds), (4000, 1)).astype(np.float32))
        drawn = draw([row([0] * (n % 7), temperature=1.0, seed=n) for n in range(4000)], values)
        seen = np.bincount(drawn, minlength=4) / 4000
        self.assertLess(np.abs(seen - odds).max(), 0.03)

    def test_temperature_zero_takes_the_largest(self) -> None:
        values = logits(3)
        self.assertEqual(draw([row(top_p=0.1, seed=n) for n in range(3)], values), mx.argmax(values, -1).tolist())


class Filters(unittest.TestCase):
    ASKED = [
        dict(top_k=1), dict(top_k=40), dict(top_p=0.9), dict(top_p=0.05), dict(min_p=0.1), dict(top_k=3000),
        dict(top_k=50, top_p=0.7), dict(top_p=0.999999), dict(top_k=20, top_p=0.8, min_p=0.2),
        dict(top_p=0.95, min_p=0.02),
    ]  # fmt: skip

    def test_cutoffs_keep_exactly_what_the_definition_keeps(self) -> None:
        for width in (0.05, 1.0, 4.0):  # flat: the best few hundred do not hold the mass
            values = logits(len(self.ASKED), 3, width=width)
            rows = [row(temperature=1.0, **asked) for asked in self.ASKED]
            low = host_cutoffs(np.array(values), rows)
            plan = SamplingPlan(rows, on_cpu=False)
            on_device = np.array(plan._cutoffs(values))
            for index, asked in enumerate(self.ASKED):
                line = np.array(values[index])
                wanted = allowed(line, **asked)
                self.assertEqual(set(np.flatnonzero(line >= low[index]).tolist()), wanted, (asked, width))
                kept = set(np.flatnonzero(line >= on_device[index]).tolist())
                odds = np.exp(line - line.max()).astype(np.float64)
                differing = odds[list(kept ^ wanted)].sum() / odds.sum()
                self.assertLess(differing, 1e-5 + odds.max() / odds.sum() / 1000, (asked, width))  # float32 sums

    def test_a_row_never_draws_what_its_filters_exclude(self) -> None:
        values = logits(1, 5)
        wanted = allowed(np.array(values[0]) / 0.8, top_k=30, top_p=0.6)
        for on_cpu in (True, False):
            drawn = {draw([row(temperature=0.8, top_k=30, top_p=0.6, seed=n)], values, on_cpu)[0] for n in range(200)}
            self.assertLessEqual(drawn, wanted)
            self.assertGreater(len(drawn), 3)

    def test_filters_come_after_temperature(self) -> None:
        values = mx.array(np.log([[0.6, 0.3, 0.1]]).astype(np.float32))
        # At temperature 4 the first has 0.41 of the mass, so 0.5 takes in the second as well.
        hot = {draw([row(temperature=4.0, top_p=0.5, seed=n)], values)[0] for n in range(60)}
        cold = {draw([row(temperature=1.0, top_p=0.5, seed=n)], values)[0] for n in range(60)}
        self.assertEqual((hot, cold), ({0, 1}, {0}))

    def test_rows_with_and_without_filters_share_a_draw(self) -> None:
        values = logits(3)
        rows = [row(temperature=1.0, seed=1), row(temperature=1.0, top_k=1, seed=2), row(seed=3)]
        drawn = draw(rows, values)
        self.assertEqual(drawn[1:], mx.argmax(values[1:], -1).tolist())


class Penalties(unittest.TestCase):
    def reference(self, values: np.ndarray, prompt: list[int], ids: list[int], asked: dict[str, Any]) -> np.ndarray:
        out = values.copy()
        for token, bias in asked.get("logit_bias", ()):
            out[token] += bias
        for token in set(prompt + ids):
            factor = asked.get("repetition_penalty", 1.0)
            out[token] = out[token] / factor if out[token] > 0 else out[token] * factor
        for token in set(ids):
            count = ids.count(token)
            out[token] -= asked.get("presence_penalty", 0.0) + asked.get("frequency_penalty", 0.0) * count
        return out

    def test_penalties_and_bias_follow_their_definitions(self) -> None:
        values = logits(4)
        cases = [
            dict(repetition_penalty=1.8),
            dict(presence_penalty=2.0, frequency_penalty=-0.5),
            dict(repetition_penalty=0.7, frequency_penalty=1.5, logit_bias=((3, 5.0), (7, -100.0), (7, 1.0))),
            dict(),
        ]
        prompts, ids = [[1, 2, 2, 3]] * 4, [[3, 4, 4, 5], [4] * 300, [9, 8, 9], [1, 2]]
        rows = [row(ids[n], prompts[n], **case) for n, case in enumerate(cases)]
        plan = SamplingPlan(rows, True)
        changed = plan._with_penalties(
            values if plan._bias is None else values.at[plan._bias[0], plan._bias[1]].add(plan._bias[2])
        )
        for n, case in enumerate(cases):
            wanted = self.reference(np.array(values[n]), prompts[n], ids[n], case)
            np.testing.assert_allclose(np.array(changed[n]), wanted, atol=1e-4)

    def test_history_grows_with_the_answer(self) -> None:
        values = logits(1)
        one = row([], [5], frequency_penalty=1.0)
        plan = SamplingPlan([one], True)
        seen = []
        for _ in range(400):  # more distinct tokens than it first has room for
            token = plan.read(plan.draw(values))[0].token
            one.ids.append(token)
            seen.append(token)
        fresh = row(seen[:-1], [5], frequency_penalty=1.0)
        self.assertEqual(draw([fresh], values), [seen[-1]])
        self.assertGreater(len(set(seen)), 100)

    def test_bias_can_force_and_forbid(self) -> None:
        values = logits(1)
        best = mx.argmax(values[0]).item()
        self.assertEqual(draw([row(logit_bias=((11, 100.0),))], values), [11])
        self.assertNotEqual(draw([row(logit_bias=((best, -100.0),))], values), [best])


class LogProbabilities(unittest.TestCase):
    def test_log_probabilities_are_the_models_own(self) -> None:
        values = logits(3)
        rows = [row(), row(temperature=2.0, logit_bias=((5, 50.0),), logprobs=3), row(logprobs=0)]
        plan = SamplingPlan(rows, True)
        draws = plan.read(plan.draw(values))
        known = np.array(values) - np.log(np.exp(np.array(values)).sum(-1, keepdims=True))
        self.assertIsNone(draws[0].logprob)
        self.assertEqual(draws[1].token, 5)
        for index in (1, 2):
            self.assertAlmostEqual(draws[index].logprob, known[index][draws[index].token], places=4)
        best = np.argsort(-known[1])[:3]
        self.assertEqual([token for token, _ in draws[1].top], best.tolist())
        np.testing.assert_allclose([value for _, value in draws[1].top], known[1][best], atol=1e-4)
        self.assertEqual(draws[2].top, [])


if __name__ == "__main__":
    unittest.main()
