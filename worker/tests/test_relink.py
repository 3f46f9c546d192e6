"""Losing one stage costs one stage: the others keep processes, weights and caches, and answers go on as if nothing
had happened."""

import os
import random
import signal
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.random_model import write_random_model
from bushel_worker.pipeline.head import PipelineEngine
from bushel_worker.pipeline.kept import Kept
from bushel_worker.pipeline.link import Activity
from bushel_worker.pipeline.mlx_work import MlxWork
from bushel_worker.pipeline.orphans import Orphans
from bushel_worker.pipeline.recovery import Anew, Held, Refill, Replay, Whole, remedy
from bushel_worker.pipeline.wire import Tensor
from bushel_worker.stage import Stage
from bushel_worker.stage_port import Span
from bushel_worker.stage_rows import StageRows

from .group import Group, stage_frames
from .loopback import Loopback
from .rank import Rank, load_frame, submit_frame
from .test_engine import SAMPLINGS, prompt
from .tiny import ON_CPU, Drive, tiny_model, tiny_service


class Remedies(unittest.TestCase):
    def test_remedy_computes_as_little_as_possible(self) -> None:
        whole, lost = Held(9, 9), Held(0, 0)
        self.assertEqual(remedy(9, [whole, whole, whole]), Whole())
        self.assertEqual(remedy(9, [whole, lost, whole]), Replay(1, 1, 0))
        self.assertEqual(remedy(9, [whole, lost, lost]), Replay(1, 2, 0))
        self.assertEqual(remedy(9, [whole, Held(8, 8), Held(8, 0)]), Replay(1, 2, 8))
        self.assertEqual(remedy(9, [lost, whole, whole]), Refill(0))
        self.assertEqual(remedy(9, [lost, lost, whole]), Anew())
        self.assertEqual(remedy(9, [Held(9, 3), lost, whole]), Anew())
        self.assertEqual(remedy(9, [whole, lost, whole, lost]), Anew())
        self.assertEqual(remedy(9, [whole, Held(8, 8), lost]), Anew())

    def test_kept_states_are_bounded_and_padding_is_not_kept(self) -> None:
        kept = Kept(100)
        tensor = Tensor((2, 3, 2), "int32", bytes(range(48)))
        kept.add([Span(1, 0, 3), Span(2, 0, 1)], tensor)
        self.assertEqual((kept.tokens(1), kept.tokens(2)), (3, 1))
        self.assertEqual(bytes(kept.take(2, 0, 1).data), bytes(range(24, 32)))
        self.assertEqual(bytes(kept.take(1, 1, 3).data), bytes(range(8, 24)))
        kept.trim(1, 2)
        self.assertEqual(kept.tokens(1), 2)
        kept.add([Span(1, 2, 12)], Tensor((1, 10, 2), "int32", bytes(80)))
        self.assertEqual((kept.tokens(1), kept.tokens(2)), (0, 1))  # the largest goes, and stays away
        kept.add([Span(1, 12, 13)], Tensor((1, 1, 2), "int32", bytes(8)))
        self.assertEqual(kept.tokens(1), 0)
        kept.forget(2)
        self.assertEqual(kept._held, 0)

    def test_orphans_are_found_where_all_stages_agree(self) -> None:
        orphans = Orphans([{"4": [[7, "a"], [8, "b"]], "5": [[3, "c"]]}, {"4": [[7, "a"]], "5": [[3, "x"]]}])
        self.assertIsNone(orphans.take(8, "b"))
        self.assertIsNone(orphans.take(3, "c"))
        self.assertEqual(orphans.take(7, "a"), 4)
        self.assertIsNone(orphans.take(7, "a"))
        self.assertEqual((orphans.highest, orphans.expired(0)), (5, []))
        self.assertEqual(orphans.expired(float("inf")), [5])


class InOneProcess(unittest.TestCase):
    """Stages are lost between any two operations; the loop goes on with what recovery gives it."""

    def run_with_loss(self, name: str, victim: int, rounds: int, half_done: bool) -> tuple[Any, Any, int, int]:
        whole = tiny_service(Stage(tiny_model(name)))
        edges = [0, 2, 4, 6]
        loopback = Loopback([Stage(tiny_model(name), span) for span in zip(edges, edges[1:])])
        drive = Drive(replace(whole, engine=loopback.engine, spread=3), chunk=8)
        for index in range(4):
            drive.submit(str(index), prompt(index, 6 + 5 * index), 16, SAMPLINGS[index], logprobs=0)
        drive.rounds(rounds)
        if half_done:  # the tokens of the steps under way never come back
            while not loopback.ring.inbox.empty():
                loopback.ring.inbox.get()
        if victim:
            service = loopback.services[victim - 1]
            stage = Stage(tiny_model(name), (edges[victim], edges[victim + 1]))
            service._work.stage = StageRows(stage)
            service._holding.__init__(service._work.stage, 1 << 20)  # type: ignore[misc]
            service._rows.clear()
        told = []

        def recover(wanted: dict[Any, int]) -> set[Any]:
            anew, again = loopback.engine.recover(loopback.ring, wanted, 7)
            told.append((len(anew), again))
            return anew

        drive.loop.resume(recover)
        drive.run()
        for index in range(4):
            alone = Drive(whole)
            alone.submit("x", prompt(index, 6 + 5 * index), 16, SAMPLINGS[index], logprobs=0)
            wanted = alone.run().shown("x")
            got = drive.shown(str(index))
            self.assertEqual([r["token"] for r in got], [r["token"] for r in wanted], (name, victim, rounds, index))
            for mine, theirs in zip(got, wanted):
                self.assertAlmostEqual(mine["logprob"]["logprob"], theirs["logprob"]["logprob"], delta=1e-3)
        return drive, loopback, *told[0]

    def test_a_lost_stage_is_rebuilt_from_what_was_kept(self) -> None:
        for victim, rounds, half_done in ((1, 12, True), (2, 14, False), (2, 9, True), (1, 3, True)):
            _, _, anew, again = self.run_with_loss("llama", victim, rounds, half_done)
            self.assertEqual(anew, 0)
            self.assertGreater(again, 0)

    def test_a_half_done_step_is_undone(self) -> None:
        _, _, anew, again = self.run_with_loss("llama", 0, 12, True)
        self.assertEqual((anew, again), (0, 0))

    def test_caches_that_cannot_be_trimmed_are_prefilled_anew(self) -> None:
        _, _, anew, _ = self.run_with_loss("mamba2", 1, 12, True)
        self.assertGreater(anew, 0)


    def test_a_new_head_goes_on_with_the_caches_that_later_stages_kept(self) -> None:
        whole = tiny_service(Stage(tiny_model()))
        edges = [0, 2, 4, 6]
        stages = [Stage(tiny_model(), span) for span in zip(edges, edges[1:])]
        loopback = Loopback(stages)
        drive = Drive(replace(whole, engine=loopback.engine, spread=3), chunk=60)
        for index in range(3):
            drive.submit(str(index), prompt(index, 20), 16, SAMPLINGS[index])
        drive.rounds(7)
        said = {str(index): drive.tokens(str(index)) for index in range(3)}
        self.assertGreater(min(map(len, said.values())), 0)
        while not loopback.ring.inbox.empty():
            loopback.ring.inbox.get()
        work = MlxWork(StageRows(stages[0]), ON_CPU)
        engine = PipelineEngine(work, loopback.ring, 3, Activity(), 1 << 20)  # type: ignore[arg-type]
        engine.gather({})
        loopback.ring.outward.bytes = 0
        again = Drive(replace(whole, engine=engine, spread=3), chunk=60)
        for index in range(3):
            name = str(index)
            again.submit(name, prompt(index, 20), 16, SAMPLINGS[index], replay=said[name])
        again.run()
        steps = 0
        for index in range(3):
            alone = Drive(whole)
            alone.submit("x", prompt(index, 20), 16, SAMPLINGS[index])
            self.assertEqual(said[str(index)] + again.tokens(str(index)), alone.run().tokens("x"))
            steps += len(again.tokens(str(index)))
        self.assertEqual(loopback.ring.outward.bytes, steps * 32 * 4)  # no prompt has crossed again
        for held in loopback.held[1:]:
            self.assertEqual((held.batches, held.filling, held.tokens), ({}, {}, {}))


class Processes(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.known: dict[str, dict[str, list[int]]] = {}
        cls.model = str(Path(folder.name, "tiny"))
        write_random_model(Path(cls.model), scale=2.5, num_hidden_layers=6)
        cls.script = str(Path(folder.name, "script.json"))
        Path(cls.script).write_text('{"tokens": 80, "tokensPerSecond": 150}')

    def frames(self, engine: str) -> list[dict[str, Any]]:
        path = self.script if engine == "scripted" else self.model
        cuts = [0, 1, 2, 3] if engine == "scripted" else [0, 2, 4, 6]
        return stage_frames(cuts, path, engine, peerTimeoutMsMax=2500, relinkWaitMsMax=30_000)

    def asked(self, index: int, replay: list[int] | None = None) -> dict[str, Any]:
        sampling = [{}, {"temperature": 0.9, "seed": "5", "repetitionPenalty": 1.1}][index % 2]
        named = dict(sampling=sampling, tokensMax=80, ignoreEos=True, replay=replay or [])
        return submit_frame(str(index), "tell me something " * (1 + 4 * index), **named)

    def unbroken(self, engine: str) -> dict[str, list[int]]:
        if engine not in self.known:
            frame = load_frame(self.script if engine == "scripted" else self.model, engine)
            with Rank(frame) as rank:
                for index in range(4):
                    rank.send(self.asked(index))
                self.known[engine] = {str(index): rank.answer(str(index)).tokens for index in range(4)}
        return self.known[engine]

    def lose(self, group: Group, victim: int, how: signal.Signals, engine: str) -> list[dict[str, Any]]:
        """Kills a rank, starts another in its place, and returns what the survivors said."""
        os.kill(group.ranks[victim].process.pid, how)
        survivors = [rank for index, rank in enumerate(group.ranks) if index != victim]
        told = [rank.next("peer-lost", seconds=10) for rank in survivors]
        if how == signal.SIGSTOP:
            group.ranks[victim].process.kill()
        fresh = self.frames(engine)
        for frame in fresh:
            frame.update(plan="p2", secret="another secret")
        group.replace(victim, fresh)
        return told

    def check_tail(self, engine: str, victim: int, how: signal.Signals, seed: int) -> dict[str, Any]:
        wanted = self.unbroken(engine)
        with Group(self.frames(engine)) as group:
            for index in range(4):
                group.head.send(self.asked(index))
            steps = random.Random(seed).randint(1, 30)
            for _ in range(steps):
                group.head.next("step")
            told = self.lose(group, victim, how, engine)
            self.assertEqual({frame["rank"] for frame in told}, {victim})
            pids = [rank.process.pid for rank in group.ranks]
            relinked = group.head.next("relinked", seconds=40)
            paused = group.head.next("paused", seconds=1)
            self.assertEqual(set(paused["attempts"]) - {"0", "1", "2", "3"}, set())
            self.assertRegex(paused["pause"]["cause"], f"^rank {victim} of its group was lost")
            self.assertGreater(paused["pause"]["waitedMs"], 0)
            for index in range(4):
                answer = group.answer(str(index))
                self.assertEqual(answer.tokens, wanted[str(index)], (victim, how, index))
                self.assertEqual([row["position"] for row in answer.rows], list(range(80)))
            self.assertEqual(pids, [rank.process.pid for rank in group.ranks])
            return relinked

    def check_head(self, engine: str) -> None:
        wanted = self.unbroken(engine)
        with Group(self.frames(engine)) as group:
            for index in range(4):
                group.head.send(self.asked(index))
            for _ in range(20):
                group.head.next("step")
            before = group.head
            self.lose(group, 0, signal.SIGKILL, engine)
            rows = [row for frame in before.seen if frame["kind"] == "step" for row in frame["rows"]]
            said = {str(i): [row["token"] for row in rows if row["attempt"] == str(i)] for i in range(4)}
            group.head.next("ready", seconds=60)
            for index in range(4):
                group.head.send(self.asked(index, said[str(index)]))
            for index in range(4):
                name = str(index)
                self.assertEqual(said[name] + group.answer(name).tokens, wanted[name])

    # Failed once in many runs on a busy machine: a survivor went instead of saying "peer-lost". Not understood yet.
    @unittest.skipUnless(os.environ.get("BUSHEL_LONG"), "six losses one after the other: with --long")
    def test_scripted_groups_go_on_after_any_later_stage_was_lost(self) -> None:
        for victim, how in ((1, signal.SIGKILL), (2, signal.SIGKILL), (1, signal.SIGSTOP)):
            with self.subTest(victim=victim, how=how.name):
                self.check_tail("scripted", victim, how, 7 * victim)

    def test_scripted_groups_go_on_after_their_head_was_lost(self) -> None:
        self.check_head("scripted")

    def test_a_model_goes_on_and_only_the_lost_layers_compute_again(self) -> None:
        relinked = self.check_tail("mlx", 1, signal.SIGKILL, 3)
        self.assertEqual(relinked["rowsAnew"], 0)
        self.assertGreater(relinked["tokensReplayed"], 0)

    def test_a_rank_that_nobody_relinks_goes_with_a_reason(self) -> None:
        frames = stage_frames([0, 1, 2], self.script, relinkWaitMsMax=500)
        with Group(frames) as group:
            group.ranks[1].process.kill()
            told = group.head.next("failed", seconds=5)
            self.assertEqual(told["code"], "peer-lost")
            self.assertIn("rank 1", told["message"])


if __name__ == "__main__":
    unittest.main()
