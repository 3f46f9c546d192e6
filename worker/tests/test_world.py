"""Worlds of real worker processes that share the starter model, against one process."""

import json
import os
import signal
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

from bench.random_model import write_random_model

from .group import Group, cpu_seconds, gone, resident_bytes
from .rank import Answer, Rank, load_frame, submit_frame
from .starter import starter_folder
from .test_group import PENALISED, SAMPLED, STORIES
from .worlds import RING_BYTES, WorldGroup, grouped_frames, world_frames

SAMPLINGS: list[dict[str, Any]] = [{}, {}, SAMPLED, PENALISED]
REQUESTS = 8


def asked(index: int, attempt: str = "") -> dict[str, Any]:
    asking: dict[str, Any] = dict(sampling=SAMPLINGS[index % 4], tokensMax=3 + index % 3, ignoreEos=True, logprobs=2)
    return submit_frame(attempt or f"r{index}", STORIES[index], **asking)


PERSON = {
    "type": "object",
    "properties": {"name": {"enum": ["Ada", "Grace"]}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
KEPT: list[dict[str, Any]] = [
    {"kind": "json-schema", "schema": PERSON},
    {"kind": "regex", "pattern": "[0-9]{2}-(a|b)"},
    {"kind": "json-schema", "schema": PERSON},
]


def kept(index: int) -> dict[str, Any]:
    """A request whose answer keeps to a grammar; one of them is drawn at random."""
    sampling = {"temperature": 1.0, "seed": "11"} if index == 2 else {}
    return submit_frame(f"k{index}", "Invent a person.", grammar=KEPT[index], sampling=sampling, tokensMax=40)


_alone: dict[str, Answer] = {}
_weights: list[int] = []
_whole: list[int] = []  # bytes that one process has which holds all of the model
TABLES_SECONDS = 3  # after `ready`, until a head has built its tables for grammars


def alone() -> dict[str, Answer]:
    """What one process says to the same requests."""
    if not _alone:
        with Rank(load_frame(str(starter_folder()), "mlx", rowsMax=8)) as rank:
            time.sleep(TABLES_SECONDS)
            _weights.append(rank.ready["weightsBytes"])
            _whole.append(resident_bytes(rank.process.pid))
            for index in range(REQUESTS):
                rank.send(asked(index))
            _alone.update((f"r{index}", rank.answer(f"r{index}")) for index in range(REQUESTS))
            for index in range(len(KEPT)):
                rank.send(kept(index))
            _alone.update((f"k{index}", rank.answer(f"k{index}")) for index in range(len(KEPT)))
    return _alone


class Shared:
    """What holds however the starter model is shared."""

    requests = REQUESTS
    shares: list[float]
    buffers: list[int]
    group: Group

    @staticmethod
    def frames(path: str) -> list[dict[str, Any]]:
        raise NotImplementedError

    @classmethod
    def setUpClass(cls) -> None:
        cls.wanted = alone()
        cls.group = WorldGroup(cls.frames(str(starter_folder()))).__enter__()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.group.close()

    def test_a_each_rank_holds_its_share_in_memory(self: Any) -> None:
        """As the operating system counts it. Taken off is what a rank has before it loads; for the head, which
        builds tables for its language meanwhile, what a process with the whole model has besides the weights."""
        time.sleep(TABLES_SECONDS)
        besides = [_whole[0] - _weights[0], *self.group.bare_bytes[1:]]
        for rank, bare, share, kept in zip(self.group.ranks, besides, self.shares, self.buffers):
            held = resident_bytes(rank.process.pid) - bare - kept
            self.assertAlmostEqual(held / _weights[0] / share, 1, delta=0.1)

    def test_requests_that_join_and_two_that_are_cancelled_equal_one_process(self: Any) -> None:
        head = self.group.head
        for name, prompt in (("gone", "bushel " * 10), ("unread", "bushel " * 300)):
            head.send(submit_frame(name, prompt, tokensMax=400, ignoreEos=True))
        for index in range(self.requests):
            head.send(asked(index))
            if index == self.requests // 3:
                head.send({"kind": "cancel", "attempt": "unread"})
            if index == self.requests // 2:
                head.send({"kind": "cancel", "attempt": "gone"})
            time.sleep(0.05)
        for index in range(self.requests):
            self.assert_equal(self.group.answer(f"r{index}"), self.wanted[f"r{index}"])
        self.assertEqual(self.group.answer("gone").reason, "cancelled")
        self.assertEqual(self.group.answer("unread").reason, "cancelled")

    def test_answers_keep_to_their_grammars_beside_a_free_one(self: Any) -> None:
        head = self.group.head
        head.send(asked(0, "free"))
        for index in range(len(KEPT)):
            head.send(kept(index))
        for index in (0, 2):
            answer = self.group.answer(f"k{index}")
            person = json.loads(answer.text())
            self.assertEqual((answer.reason, sorted(person)), ("stop", ["age", "name"]))
            self.assertIn(person["name"], ("Ada", "Grace"))
            self.assertEqual(answer.tokens, self.wanted[f"k{index}"].tokens)
        self.assertRegex(self.group.answer("k1").text(), "^[0-9]{2}-(a|b)$")
        self.assert_equal(self.group.answer("free"), self.wanted["r0"])

    def test_idle_ranks_use_no_processor(self: Any) -> None:
        self.group.head.send(asked(0, "before"))
        self.group.answer("before")
        time.sleep(0.5)
        before = [cpu_seconds(rank.process.pid) for rank in self.group.ranks]
        time.sleep(3)
        spent = sum(cpu_seconds(rank.process.pid) - was for rank, was in zip(self.group.ranks, before))
        self.assertLess(spent / 3, 0.02, "idle ranks use more than 2% of a core")
        for rank in self.group.ranks:
            pulses = [frame for frame in rank.seen if frame["kind"] == "pulse"]
            self.assertTrue(any(pulse["busy"] for pulse in pulses))
            self.assertFalse(pulses[-1]["busy"])

    def assert_equal(self: Any, answer: Answer, wanted: Answer) -> None:
        self.assertEqual(answer.tokens, wanted.tokens)
        self.assertEqual(answer.text(), wanted.text())
        for mine, theirs in zip(answer.rows, wanted.rows):
            self.assertAlmostEqual(mine["logprob"]["logprob"], theirs["logprob"]["logprob"], delta=1e-3)
            self.assertEqual(
                [entry["token"] for entry in mine["logprob"]["top"]],
                [entry["token"] for entry in theirs["logprob"]["top"]],
            )


@unittest.skipUnless(os.environ.get("BUSHEL_LONG"), "the same over hosts is in the test run: with --long")
class UnevenTwo(Shared, unittest.TestCase):
    """Three KV heads over two ranks, the first with two thirds of everything."""

    shares = [2 / 3, 1 / 3]
    buffers = [RING_BYTES] * 2

    @staticmethod
    def frames(path: str) -> list[dict[str, Any]]:
        return world_frames(2, path, shares=[2, 1], rowsMax=8, peerTimeoutMsMax=10_000)


@unittest.skipUnless(os.environ.get("BUSHEL_LONG"), "three ranks that wait on two cores: with --long")
class Three(Shared, unittest.TestCase):
    """Three ranks spin on what may be two cores, so this one is short."""

    requests = 2
    shares = [1 / 3] * 3
    buffers = [RING_BYTES] * 3

    @staticmethod
    def frames(path: str) -> list[dict[str, Any]]:
        return world_frames(3, path, rowsMax=8, peerTimeoutMsMax=30_000)


@unittest.skipUnless(os.environ.get("BUSHEL_LONG"), "the same over hosts is in the test run: with --long")
class TwoAndOne(Shared, unittest.TestCase):
    """A world for the first 20 layers, one rank for the others. The embedding is on both stages: it is tied."""

    shares = [0.3684, 0.3684, 0.4737]
    buffers = [RING_BYTES, RING_BYTES, 0]

    @staticmethod
    def frames(path: str) -> list[dict[str, Any]]:
        return grouped_frames([2, 1], [0, 20, 30], path, rowsMax=8, peerTimeoutMsMax=10_000)


class Experts(unittest.TestCase):
    """A small mixture of experts with random weights, its experts shared, or cut by mlx-lm's own `shard`."""

    def test_a_mixture_of_experts_says_what_one_process_says(self) -> None:
        shape: dict[str, Any] = dict(
            model_type="qwen3_moe", hidden_size=64, num_hidden_layers=3, num_attention_heads=4, head_dim=16,
            num_experts=6, num_experts_per_tok=2, decoder_sparse_step=1, mlp_only_layers=[], moe_intermediate_size=32,
            norm_topk_prob=True, num_key_value_heads=2, rope_theta=1e4,
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as parent:
            path = str(Path(parent, "model"))
            write_random_model(Path(path), scale=4, **shape)
            asked = [submit_frame(str(i), STORIES[i], tokensMax=12, ignoreEos=True, logprobs=2) for i in range(3)]
            with Rank(load_frame(path, "mlx")) as rank:
                for frame in asked:
                    rank.send(frame)
                wanted = [rank.answer(str(index)) for index in range(3)]
            self.assertGreater(len({token for answer in wanted for token in answer.tokens}), 6)
            for strategy, shares in (("expert", [2.0, 1.0]), ("tensor", [])):
                frames = world_frames(2, path, strategy, shares, peerTimeoutMsMax=10_000)
                with self.subTest(strategy), Group(frames) as group:
                    for frame in asked:
                        group.head.send(frame)
                    for index in range(3):
                        answer = group.answer(str(index))
                        self.assertEqual(answer.tokens, wanted[index].tokens)
                        for mine, theirs in zip(answer.rows, wanted[index].rows):
                            difference = mine["logprob"]["logprob"] - theirs["logprob"]["logprob"]
                            self.assertLess(abs(difference), 1e-3)


class ScriptedWorld(unittest.TestCase):
    """Ranks that find, watch and lose each other without computing anything."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = str(Path(folder.name, "script.json"))
        Path(self.path).write_text(json.dumps({"tokens": 400, "tokensPerSecond": 100}))

    def test_any_rank_that_goes_or_stops_ends_all_others_and_is_named(self) -> None:
        for victim, how in ((0, signal.SIGKILL), (2, signal.SIGSTOP)):
            with self.subTest(victim=victim, how=how):
                frames = world_frames(3, self.path, engine="scripted", peerTimeoutMsMax=1500)
                with Group(frames) as group:
                    group.head.send(submit_frame("a"))
                    group.head.next("step")
                    began = time.monotonic()
                    os.kill(group.ranks[victim].process.pid, how)
                    for number, rank in enumerate(group.ranks):
                        if number != victim:
                            told = rank.next("failed", seconds=10)
                            self.assertEqual((told["code"], told["attempt"]), ("peer-lost", None))
                            self.assertTrue(gone(rank.process, 2))
                            self.assertIn(f"rank {victim} ", told["message"])
                    self.assertLess(time.monotonic() - began, 8)


class Lost(unittest.TestCase):
    """A rank that goes, or stops, ends its world before a wrong token is said."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = str(Path(folder.name, "tiny"))
        shape = dict(num_hidden_layers=2, hidden_size=48, num_attention_heads=3, num_key_value_heads=3)
        write_random_model(Path(self.path), **shape)

    def unbroken(self) -> list[int]:
        with Rank(load_frame(self.path, "mlx")) as rank:
            rank.send(submit_frame("a", tokensMax=40, ignoreEos=True))
            return rank.answer("a").tokens

    def test_any_rank_killed_or_stopped_while_writing_or_idle_ends_the_others_in_time(self) -> None:
        wanted = self.unbroken()
        for victim, how, writing in (
            (1, signal.SIGKILL, True),
            (0, signal.SIGSTOP, True),
            *(((1, signal.SIGSTOP, True), (0, signal.SIGKILL, False)) if os.environ.get("BUSHEL_LONG") else ()),
        ):
            with self.subTest(victim=victim, how=how, writing=writing):
                with Group(world_frames(2, self.path, peerTimeoutMsMax=1500)) as group:
                    if writing:
                        group.head.send(submit_frame("a", tokensMax=4000, ignoreEos=True))
                        for _ in range(5):
                            group.head.next("step")
                    began = time.monotonic()
                    os.kill(group.ranks[victim].process.pid, how)
                    other = group.ranks[1 - victim]
                    told = other.next("failed", seconds=8)
                    self.assertLess(time.monotonic() - began, 6)
                    self.assertTrue(gone(other.process, 2))
                    self.assertIsNone(told["attempt"])
                    self.assertEqual(told["code"], "peer-lost")
                    self.assertIn(f"rank {victim} ", told["message"])
                    said = [row["token"] for f in group.head.seen if f["kind"] == "step" for row in f["rows"]]
                    self.assertEqual(said[:40], wanted[: len(said)])

    def test_ranks_that_differ_are_refused_by_name(self) -> None:
        frames = world_frames(2, self.path, connectTimeoutMsMax=20_000)
        frames[1].update(plan="another", dtype="bfloat16")
        group = Group(frames)
        self.addCleanup(group.close)
        for told in group.ends():
            self.assertEqual(told["code"], "group-mismatch")
            self.assertIn("plan is", told["message"])
            self.assertIn("dtype is", told["message"])
