"""The loop on a tiny model: rows do not change each other, whatever joins, leaves, or is cut off."""

import random
import unittest
from dataclasses import replace
from typing import Any

from bushel_worker.canary import one_token
from bushel_worker.engine import MlxEngine
from bushel_worker.frames import Sampling
from bushel_worker.memory import CacheCost, MemoryPlan
from bushel_worker.scheduler import Scheduler
from bushel_worker.stage import Stage
from bushel_worker.stage_rows import StageRows

from .shapes import FROM_WORKER
from .tiny import ON_CPU, VOCABULARY, Drive, tiny_model, tiny_service

SAMPLINGS = [
    Sampling(),
    Sampling(temperature=1.0, seed=5),
    Sampling(temperature=0.9, top_k=10, seed=6),
    Sampling(temperature=1.3, top_p=0.8, seed=7),
    Sampling(temperature=1.0, min_p=0.05, seed=8),
    Sampling(temperature=0.8, repetition_penalty=1.3, frequency_penalty=0.4, presence_penalty=0.2, seed=9),
    Sampling(temperature=1.0, logit_bias=((3, 2.0), (4, -5.0)), seed=10),
    Sampling(repetition_penalty=1.2),
]


def prompt(index: int, length: int) -> list[int]:
    chance = random.Random(index)
    return [chance.randrange(VOCABULARY) for _ in range(length)]


class TinyCase(unittest.TestCase):
    stage: Stage

    @classmethod
    def setUpClass(cls) -> None:
        cls.stage = Stage(tiny_model(num_hidden_layers=2))
        cls.service = tiny_service(cls.stage)

    def drive(self, chunk: int = 16, **changes: Any) -> Drive:
        """A loop with an engine of its own on the shared model."""
        memory = replace(self.service.memory, capacity_bytes=changes.pop("capacity_bytes", 1 << 40))
        limits = replace(self.service.limits, rows_max=changes.pop("rows_max", 64))
        engine = MlxEngine(StageRows(self.stage), ON_CPU)
        self.engines.append(engine)
        return Drive(replace(self.service, engine=engine, memory=memory, limits=limits, **changes), chunk)

    def alone(self, index: int, length: int, count: int, **named: Any) -> list[int]:
        drive = self.drive()
        drive.submit("x", prompt(index, length), count, SAMPLINGS[index % 8], **named)
        return drive.run().tokens("x")

    def setUp(self) -> None:
        self.engines: list[MlxEngine] = []

    def tearDown(self) -> None:
        """Nothing is left behind in an engine."""
        for engine in self.engines:
            held = engine._stage
            self.assertEqual((engine._batches, engine._numbers), ({}, {}))
            self.assertEqual((held.batches, held.filling, held.tokens), ({}, {}, {}))


class Together(TinyCase):
    def test_eight_rows_together_equal_eight_alone(self) -> None:
        drive = self.drive()
        for index in range(8):
            drive.submit(str(index), prompt(index, 5 + 3 * index), 20 + index, SAMPLINGS[index])
        drive.run()
        for index in range(8):
            self.assertEqual(drive.tokens(str(index)), self.alone(index, 5 + 3 * index, 20 + index), index)
            self.assertEqual(drive.end(str(index))["reason"], "length")

    def test_rows_that_join_and_leave_change_no_other(self) -> None:
        drive = self.drive(chunk=3)
        lengths = [4, 30, 2, 9, 1, 17, 12, 6]
        for index in range(8):
            drive.submit(str(index), prompt(index, lengths[index]), 8 + 5 * (index % 3), SAMPLINGS[index])
            drive.rounds(4)
        drive.run()
        for index in range(8):
            wanted = self.alone(index, lengths[index], 8 + 5 * (index % 3))
            self.assertEqual(drive.tokens(str(index)), wanted, index)

    def test_rows_stay_apart_when_they_may_not_share_a_step(self) -> None:
        drive = self.drive(merging=False, reading_together=False)
        for index in range(3):
            drive.submit(str(index), prompt(index, 4 + index), 10, SAMPLINGS[index])
        drive.rounds(6)
        self.assertEqual([len(batch.rows) for batch in drive.loop._scheduler.batches], [1, 1, 1])
        drive.run()
        for index in range(3):
            self.assertEqual(drive.tokens(str(index)), self.alone(index, 4 + index, 10))

    def test_the_way_of_a_gpu_gives_the_same_answers(self) -> None:
        drive = self.drive()
        drive.service.engine._on_cpu = False
        for index in range(8):
            drive.submit(str(index), prompt(index, 5 + index), 12, SAMPLINGS[index])
        drive.run()
        for index in range(8):
            self.assertEqual(drive.tokens(str(index)), self.alone(index, 5 + index, 12), index)

    def test_one_step_serves_all_rows_of_a_micro_batch(self) -> None:
        drive = self.drive()
        for index in range(4):
            drive.submit(str(index), prompt(index, 6), 10)
        drive.run()
        sizes = [len(frame["rows"]) for frame in drive.frames if frame["kind"] == "step"]
        self.assertEqual((max(sizes), sum(sizes)), (4, 40))

    def test_every_frame_has_its_shape(self) -> None:
        drive = self.drive()
        drive.submit("a", prompt(1, 40), 6, SAMPLINGS[3], logprobs=5)
        drive.submit("b", prompt(2, 4), 3)
        for frame in drive.run().frames:
            FROM_WORKER(frame, "")
        self.assertEqual({f["kind"] for f in drive.frames}, {"progress", "step", "finished", "stats", "pulse"})
        self.assertEqual(drive.frames[-1], {"kind": "pulse", "step": drive.frames[-1]["step"], "busy": False})

    def test_positions_count_from_zero_without_gaps(self) -> None:
        drive = self.drive()
        drive.submit("a", prompt(1, 9), 12)
        self.assertEqual([row["position"] for row in drive.run().shown("a")], list(range(12)))

    def test_progress_tells_of_every_chunk(self) -> None:
        drive = self.drive(chunk=10)
        drive.submit("a", prompt(1, 36), 1)
        told = [(f["done"], f["total"]) for f in drive.run().frames if f["kind"] == "progress"]
        self.assertEqual(told, [(10, 35), (20, 35), (30, 35), (35, 35)])


class Ends(TinyCase):
    def test_a_stop_string_ends_an_answer_and_never_shows(self) -> None:
        tokens = self.alone(1, 8, 20)
        stop = f"{tokens[6]} {tokens[7]} "
        drive = self.drive()
        drive.submit("x", prompt(1, 8), 20, SAMPLINGS[1], stop=[stop])
        drive.run()
        text = "".join(p["text"] for row in drive.shown("x") for p in row["parts"])
        self.assertEqual(text, "".join(f"{token} " for token in tokens[:6]))
        self.assertEqual((drive.end("x")["reason"], drive.end("x")["completionTokens"]), ("stop", 8))

    def test_an_end_token_ends_an_answer_and_is_not_shown(self) -> None:
        tokens = self.alone(1, 8, 20)
        first = tokens.index(tokens[9])
        drive = self.drive()
        drive.submit("x", prompt(1, 8), 20, SAMPLINGS[1], ends=frozenset({tokens[9]}))
        drive.run()
        self.assertEqual(drive.tokens("x"), tokens[:first])
        self.assertEqual((drive.end("x")["reason"], drive.end("x")["completionTokens"]), ("stop", first))

    def test_a_resumed_answer_equals_the_unbroken_one_at_every_cut(self) -> None:
        for index in range(8):
            whole = self.alone(index, 7, 12)
            drive = self.drive()
            for cut in range(12):
                drive.submit(str(cut), prompt(index, 7), 12, SAMPLINGS[index], replay=whole[:cut])
            drive.run()
            for cut in range(12):
                self.assertEqual(drive.tokens(str(cut)), whole[cut:], (index, cut))
                self.assertEqual(drive.shown(str(cut))[0]["position"], cut)
                self.assertEqual(drive.end(str(cut))["completionTokens"], 12)

    def test_an_answer_that_was_complete_before_ends_at_once(self) -> None:
        drive = self.drive()
        drive.submit("x", prompt(1, 8), 3, replay=[5, 6, 7])
        drive.run()
        self.assertEqual((drive.tokens("x"), drive.end("x")["reason"]), ([], "length"))

    def test_text_that_cannot_be_made_fails_one_answer_only(self) -> None:
        drive = self.drive()
        bad = drive.submit("bad", prompt(1, 8), 10)
        drive.submit("good", prompt(2, 8), 10)
        bad.writer.push = lambda token: 1 / 0  # type: ignore[method-assign]
        drive.run()
        self.assertEqual((drive.end("bad")["kind"], drive.end("bad")["code"]), ("failed", "internal"))
        self.assertEqual(drive.end("good")["reason"], "length")


class Cancel(TinyCase):
    def test_cancel_of_a_waiting_row(self) -> None:
        drive = self.drive(rows_max=1)
        drive.submit("a", prompt(1, 8), 10, SAMPLINGS[1])
        drive.submit("b", prompt(2, 8), 10)
        drive.rounds(3)
        self.assertEqual([row.attempt for row in drive.loop._scheduler.waiting], ["b"])
        drive.cancel("b")
        drive.rounds()
        self.assertEqual(drive.end("b")["reason"], "cancelled")
        drive.run()
        self.assertEqual((drive.tokens("b"), drive.tokens("a")), ([], self.alone(1, 8, 10)))

    def test_cancel_of_a_row_in_prefill(self) -> None:
        drive = self.drive(chunk=4)
        drive.submit("a", prompt(1, 8), 10, SAMPLINGS[1])
        drive.submit("b", prompt(2, 200), 10)
        drive.rounds(8)
        self.assertEqual([p.row.attempt for p in drive.loop._scheduler.prefills], ["b"])
        drive.cancel("b")
        drive.rounds()
        self.assertEqual((drive.end("b")["reason"], drive.service.engine._stage.filling), ("cancelled", {}))
        self.assertEqual(drive.run().tokens("a"), self.alone(1, 8, 10))

    def test_cancel_of_a_row_that_writes_frees_its_cache_within_a_step(self) -> None:
        drive = self.drive()
        for index in range(3):
            drive.submit(str(index), prompt(index, 8), 30, SAMPLINGS[index])
        drive.rounds(6)
        batch = next(iter(drive.service.engine._stage.batches.values()))
        self.assertEqual(batch.caches[0].keys.shape[0], 3)
        drive.cancel("1")
        drive.rounds()
        self.assertEqual(batch.caches[0].keys.shape[0], 2)
        told = drive.end("1")
        self.assertEqual((told["reason"], told["completionTokens"]), ("cancelled", len(drive.tokens("1"))))
        drive.cancel("2")
        drive.run()
        self.assertEqual(drive.tokens("0"), self.alone(0, 8, 30))

    def test_cancel_of_the_last_row_leaves_an_idle_engine(self) -> None:
        drive = self.drive()
        drive.submit("a", prompt(1, 8), 1000)
        drive.rounds(5)
        drive.cancel("a")
        drive.cancel("never heard of")
        drive.run()
        self.assertEqual(drive.service.engine._batches, {})


class Memory(TinyCase):
    def test_rows_give_up_their_caches_for_older_ones_and_still_answer_alike(self) -> None:
        capacity = int(self.service.memory.per_token * 1060)  # two rows begin in it, but only one can end
        drive = self.drive(chunk=64, capacity_bytes=capacity)
        jobs = [(10, 300), (12, 290), (9, 40)]
        for index, (length, count) in enumerate(jobs):
            drive.submit(str(index), prompt(index, length), count, SAMPLINGS[index])
        highest = 0
        while not drive.loop._scheduler.idle or not drive.loop.orders.empty():
            drive.rounds()
            stage = drive.service.engine._stage
            held = [batch.caches for batch in stage.batches.values()] + list(stage.filling.values())
            highest = max(highest, sum(cache.nbytes for caches in held for cache in caches))
        self.assertLessEqual(highest, capacity)
        self.assertTrue(any(row.gave_up for row in drive.rows.values()), "nothing was short: the test proves nothing")
        self.assertFalse(drive.rows["0"].gave_up)
        for index, (length, count) in enumerate(jobs):
            self.assertEqual(drive.tokens(str(index)), self.alone(index, length, count), index)

    def test_rows_of_very_different_length_get_their_own_micro_batch(self) -> None:
        memory = self.service.memory
        plan = MemoryPlan(1 << 40, int(memory.per_token * 250), 1 << 20, memory.costs)
        drive = self.drive()
        drive.loop._scheduler = Scheduler(plan, 16, True, True)
        for index, length in enumerate((8, 10, 400, 9)):
            drive.submit(str(index), prompt(index, length), 12 if length < 400 else 30, SAMPLINGS[index])
        drive.rounds(33)  # the long prompt is read in 25 chunks
        widths = sorted(len(batch.rows) for batch in drive.loop._scheduler.batches)
        drive.run()
        for index, length in enumerate((8, 10, 400, 9)):
            self.assertEqual(drive.tokens(str(index)), self.alone(index, length, 12 if length < 400 else 30))
        self.assertEqual(widths[-1:], [1])

    def test_micro_batches_merge_when_that_has_become_cheaper(self) -> None:
        memory = MemoryPlan(1 << 40, 1000, 1 << 20, (CacheCost(1.0),))
        drive = self.drive()
        drive.loop._scheduler = Scheduler(memory, 16, True, False)
        for index in range(1, 7):
            drive.submit(str(index), prompt(index, 8), 80 if index == 1 else 45, SAMPLINGS[index])
        drive.submit("long", prompt(0, 400), 60, SAMPLINGS[0])
        drive.rounds(45)
        self.assertEqual(sorted(len(batch.rows) for batch in drive.loop._scheduler.batches), [1, 6])
        drive.rounds(25)
        self.assertEqual([len(batch.rows) for batch in drive.loop._scheduler.batches], [2])
        drive.run()
        self.assertEqual(drive.tokens("long"), self.alone(0, 400, 60))
        self.assertEqual(drive.tokens("1"), self.alone(1, 8, 80))


class Canary(TinyCase):
    def test_one_token_is_enough_and_broken_weights_give_none(self) -> None:
        self.assertTrue(one_token(self.drive().service))
        model = tiny_model(num_hidden_layers=2)
        model.model.norm.weight = model.model.norm.weight * float("nan")
        service = replace(self.service, engine=MlxEngine(StageRows(Stage(model)), ON_CPU))
        self.assertFalse(one_token(service))


if __name__ == "__main__":
    unittest.main()
