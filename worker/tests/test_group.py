"""Groups of real worker processes: scripted ones for what can go wrong, the starter model for what is said."""

import json
import os
import random
import signal
import socket
import tempfile
import time
import unittest
from typing import Any

from .group import Group, cpu_seconds, gone, resident_bytes, stage_frames
from .rank import Answer, Rank, load_frame, submit_frame
from .starter import starter_folder

SCRIPT_TOKENS = 60
STORIES = [
    "Tell me about cats.", "Count to ten.", "What is rain?", "Write a poem about the sea and the moon.",
    "Name three rivers.", "Why is grass green?", "Who wrote Faust?", "What is a bushel?",
]  # fmt: skip
SAMPLED: dict[str, Any] = {"temperature": 0.9, "topP": 0.9, "seed": "11"}
PENALISED: dict[str, Any] = {
    "temperature": 0.8, "topK": 40, "minP": 0.02, "repetitionPenalty": 1.2, "presencePenalty": 0.3,
    "frequencyPenalty": 0.2, "logitBias": [[260, 1.5], [28, -2.0]], "seed": "12",
}  # fmt: skip
SAMPLINGS = [{}, SAMPLED, PENALISED]


class Scripted(unittest.TestCase):
    def setUp(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)

    def script(self, **fields: Any) -> str:
        path = os.path.join(self._folder.name, "script.json")
        with open(path, "w") as target:
            json.dump({"tokens": SCRIPT_TOKENS, "tokensPerSecond": 200, **fields}, target)
        return path

    def unbroken(self, path: str) -> dict[str, list[int]]:
        with Rank(load_frame(path)) as rank:
            for index in range(4):
                rank.send(submit_frame(str(index), f"question {index}"))
            return {str(index): rank.answer(str(index)).tokens for index in range(4)}

    def test_a_group_says_what_one_rank_says_and_is_quiet_when_idle(self) -> None:
        path = self.script()
        wanted = self.unbroken(path)
        with Group(stage_frames([0, 1, 2, 3], path)) as group:
            for index in range(4):
                group.head.send(submit_frame(str(index), f"question {index}"))
            for index in range(4):
                self.assertEqual(group.answer(str(index)).tokens, wanted[str(index)])
            before = [cpu_seconds(rank.process.pid) for rank in group.ranks]
            time.sleep(3)
            spent = sum(cpu_seconds(rank.process.pid) - was for rank, was in zip(group.ranks, before))
            self.assertLess(spent / 3, 0.02, "idle ranks use more than 2% of a core")
            for rank in group.ranks:
                pulses = [f for f in rank.seen if f["kind"] == "pulse"]
                self.assertTrue(any(f["busy"] for f in pulses) or rank is group.head)
                self.assertFalse(pulses[-1]["busy"])

    def test_a_lost_rank_gives_an_error_in_time_and_never_a_wrong_token(self) -> None:
        path = self.script()
        wanted = self.unbroken(path)
        chance = random.Random(5)
        timeout = 1.0
        for victim, how in [(v, h) for v in range(3) for h in (signal.SIGKILL, signal.SIGSTOP)]:
            with self.subTest(victim=victim, how=how.name):
                frames = stage_frames([0, 1, 2, 3], path, peerTimeoutMsMax=int(timeout * 1000), relinkWaitMsMax=0)
                with Group(frames) as group:
                    for index in range(4):
                        group.head.send(submit_frame(str(index), f"question {index}"))
                    group.head.next("step")
                    time.sleep(chance.random() * 0.2)
                    os.kill(group.ranks[victim].process.pid, how)
                    struck = time.monotonic()
                    survivors = [rank for index, rank in enumerate(group.ranks) if index != victim]
                    told = [rank.next("failed", seconds=timeout * 2 + 2) for rank in survivors]
                    late = max(frame["at"] for frame in told) - struck
                    self.assertLess(late, 0.5 if how == signal.SIGKILL else timeout * 2 + 0.5)
                    for frame in told:
                        self.assertEqual((frame["code"], frame["attempt"]), ("peer-lost", None))
                    first = min(told, key=lambda frame: frame["at"])
                    self.assertIn(f"rank {victim} (stage {victim})", first["message"])
                    for rank in survivors:
                        self.assertTrue(gone(rank.process, 2))
                    steps = [row for f in group.head.seen if f["kind"] == "step" for row in f["rows"]]
                    for row in steps:
                        self.assertEqual(row["token"], wanted[row["attempt"]][row["position"]])
                    os.kill(group.ranks[victim].process.pid, signal.SIGCONT) if how == signal.SIGSTOP else None

    def test_a_rank_whose_engine_hangs_is_noticed_though_its_threads_beat(self) -> None:
        path = self.script(hangAt=20, faultRank=1)
        with Group(stage_frames([0, 1, 2, 3], path, peerTimeoutMsMax=1000, relinkWaitMsMax=0)) as group:
            group.head.send(submit_frame("a", "question 0"))
            told = group.head.next("failed", seconds=6)
            self.assertEqual(told["code"], "peer-lost")
            self.assertIn("rank 1 (stage 1)", told["message"])

    def test_a_lost_rank_is_noticed_while_nothing_is_to_do(self) -> None:
        with Group(stage_frames([0, 1, 2], self.script(), relinkWaitMsMax=0)) as group:
            group.ranks[1].process.kill()
            self.assertEqual(group.head.next("failed", seconds=2)["code"], "peer-lost")


class Refusals(unittest.TestCase):
    def refused(self, change: dict[str, Any], seconds: float = 20) -> list[dict[str, Any]]:
        frames = stage_frames([0, 1, 2], connectTimeoutMsMax=4000)
        frames[1].update(change)
        group = Group(frames)
        try:
            return group.ends(seconds)
        finally:
            group.close()

    def test_another_secret_is_refused(self) -> None:
        told = self.refused({"secret": "another"})
        self.assertEqual({frame["code"] for frame in told}, {"group-mismatch"})
        for frame in told:
            self.assertIn("does not know this group's secret", frame["message"])

    def test_another_plan_is_refused_and_named(self) -> None:
        for frame in self.refused({"plan": "p2"}):
            self.assertEqual(frame["code"], "group-mismatch")
            self.assertRegex(frame["message"], "plan is p[12] on rank [01] .* but p[12] on rank [01]")

    def test_another_model_digest_is_refused_and_named(self) -> None:
        for frame in self.refused({"model": {"path": "", "digest": "else", "name": "tried"}}):
            self.assertEqual(frame["code"], "group-mismatch")
            self.assertIn("model digest is", frame["message"])

    def test_a_split_that_does_not_add_up_is_refused(self) -> None:
        told = self.refused({"stage": {"index": 1, "count": 2, "layers": [2, 3]}})
        for frame in told:
            self.assertRegex(frame["message"], "split does not add up.*before layer 1 .*begins with layer 2")

    def test_a_port_that_is_taken_is_named(self) -> None:
        frames = stage_frames([0, 1, 2], connectTimeoutMsMax=1500)
        port = frames[0]["links"]["listen"]["port"]
        with socket.create_server(("127.0.0.1", port)):
            group = Group(frames)
            try:
                told = group.ends()
            finally:
                group.close()
        self.assertEqual(told[0]["code"], "group-unreachable")
        self.assertIn(f"cannot listen at 127.0.0.1:{port}", told[0]["message"])

    def test_a_stage_that_never_comes_is_named(self) -> None:
        frames = stage_frames([0, 1, 2], connectTimeoutMsMax=1000)
        rank = Rank(frames[0])
        told = rank.next("failed", seconds=10)
        self.assertEqual(told["code"], "group-unreachable")
        self.assertIn("stage 1", told["message"])
        rank.close()


class Starter(unittest.TestCase):
    """Three stages, 14, 10 and 6 layers, against one process."""

    wanted: dict[str, Answer]

    @classmethod
    def setUpClass(cls) -> None:
        with Rank(load_frame(str(starter_folder()), "mlx", rowsMax=8)) as rank:
            cls.wanted = {}
            for index, story in enumerate(STORIES):
                rank.send(cls.asked(index))
                cls.wanted[f"r{index}"] = rank.answer(f"r{index}")
            rank.send(cls.formed())
            cls.wanted["formed"] = rank.answer("formed")
            cls.weights = rank.ready["weightsBytes"]
            cls.per_token = rank.ready["kvBytesPerToken"]
        limits = dict(rowsMax=8, prefixCacheBytesMax=500_000_000)
        cls.group = Group(stage_frames([0, 14, 24, 30], str(starter_folder()), "mlx", **limits)).__enter__()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.group.close()

    @staticmethod
    def asked(index: int, **changes: Any) -> dict[str, Any]:
        asked = dict(sampling=SAMPLINGS[index % 3], tokensMax=6 + index % 4, ignoreEos=True, logprobs=3)
        return submit_frame(f"r{index}", STORIES[index], **{**asked, **changes})

    @staticmethod
    def formed() -> dict[str, Any]:
        schema = {
            "type": "object",
            "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "maximum": 99}},
            "required": ["name", "age"],
            "additionalProperties": False,
        }
        asked = dict(sampling=SAMPLED, tokensMax=40, grammar={"kind": "json-schema", "schema": schema})
        return submit_frame("formed", "Invent a person.", **asked)

    def test_a_grammar_is_kept_over_stages_as_in_one_process(self) -> None:
        self.group.head.send(self.formed())
        answer, wanted = self.group.answer("formed"), self.wanted["formed"]
        self.assertEqual((answer.tokens, answer.reason), (wanted.tokens, "stop"))
        self.assertEqual(set(json.loads(answer.text())), {"name", "age"})

    def test_a_second_turn_is_read_from_what_every_stage_has_kept(self) -> None:
        def ask(attempt: str, scope: str, messages: list[dict[str, str]]) -> Answer:
            frame = submit_frame(attempt, tokensMax=8, cacheScope=scope)
            frame["prompt"]["messages"] = messages
            self.group.head.send(frame)
            return self.group.answer(attempt)

        talk = [{"role": "user", "content": "Tell me about the moon and the sea, and what they do to each other."}]
        first = ask("one", "a", talk)
        talk += [{"role": "assistant", "content": first.text()}, {"role": "user", "content": "And the sun?"}]
        warm, cold = ask("two", "a", talk), ask("three", "b", talk)
        self.assertEqual(warm.tokens, cold.tokens)
        self.assertEqual((first.end["cachedTokens"], cold.end["cachedTokens"]), (0, 0))
        self.assertGreaterEqual(warm.end["cachedTokens"], first.end["promptTokens"] - 1)

    def test_ready_tells_each_ranks_share(self) -> None:
        told = self.group.told
        layer = (self.weights - 49152 * 576 * 4 - 576 * 4) // 30
        embedding = 49152 * 576 * 4
        shares = [14 * layer + embedding, 10 * layer, 6 * layer + embedding + 576 * 4]
        self.assertEqual([frame["weightsBytes"] for frame in told], shares)
        self.assertEqual(sum(frame["kvBytesPerToken"] for frame in told), self.per_token)

    def test_a_each_rank_holds_its_share_in_memory(self) -> None:
        """As the operating system counts it; what a rank has before it loads is taken off."""
        for rank, bare, told in zip(self.group.ranks, self.group.bare_bytes, self.group.told):
            held = resident_bytes(rank.process.pid) - bare
            self.assertAlmostEqual(held / told["weightsBytes"], 1, delta=0.1)

    def test_eight_requests_that_join_and_one_that_is_cancelled_equal_one_process(self) -> None:
        head = self.group.head
        head.send(submit_frame("gone", "bushel " * 30, tokensMax=400, ignoreEos=True))
        for index in range(8):
            head.send(self.asked(index))
            if index == 4:
                head.send({"kind": "cancel", "attempt": "gone"})
            time.sleep(0.05)
        for index in range(8):
            answer, wanted = self.group.answer(f"r{index}"), self.wanted[f"r{index}"]
            self.assertEqual(answer.tokens, wanted.tokens, index)
            for mine, theirs in zip(answer.rows, wanted.rows):
                self.assertAlmostEqual(mine["logprob"]["logprob"], theirs["logprob"]["logprob"], delta=2e-4)
        self.assertEqual(self.group.answer("gone").reason, "cancelled")

    def test_a_request_alone_has_the_log_probabilities_of_one_process(self) -> None:
        for index in (0, 2):
            self.group.head.send({**self.asked(index), "attempt": f"alone{index}"})
            answer, wanted = self.group.answer(f"alone{index}"), self.wanted[f"r{index}"]
            self.assertEqual(answer.tokens, wanted.tokens)
            self.assertEqual(answer.text(), wanted.text())
            for mine, theirs in zip(answer.rows, wanted.rows):
                self.assertAlmostEqual(mine["logprob"]["logprob"], theirs["logprob"]["logprob"], delta=1e-5)
                for (a, b) in zip(mine["logprob"]["top"], theirs["logprob"]["top"]):
                    self.assertEqual(a["token"], b["token"])
                    self.assertAlmostEqual(a["logprob"], b["logprob"], delta=1e-5)


if __name__ == "__main__":
    unittest.main()
