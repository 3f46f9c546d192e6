"""Decisions without tensors: who is let in, who reads, who shares a step, who gives way."""

import unittest

from bushel_worker.frames import Sampling
from bushel_worker.memory import GROWTH, CacheCost, MemoryPlan
from bushel_worker.pace import CHUNK_TOKENS_MIN, Pace
from bushel_worker.rows import Row
from bushel_worker.scheduler import PREFILLS_MAX, Scheduler
from bushel_worker.text import ByteDecoder, TextPlan, Writer


def plan(tokens: int = 1 << 30, weights: int = 1000) -> MemoryPlan:
    """One byte a token."""
    return MemoryPlan(tokens, weights, 0, (CacheCost(1.0),))


def row(order: int, length: int, tokens_max: int = 100) -> Row:
    return Row(f"r{order}", order, [1] * length, [], tokens_max, Sampling(), Writer(TextPlan(ByteDecoder([]))))


def run(scheduler: Scheduler, *lengths: int) -> list[Row]:
    """Rows that are decoding."""
    rows = [row(order, length) for order, length in enumerate(lengths)]
    for each in rows:
        scheduler.add(each)
        for prefill in scheduler.admit():
            prefill.done = prefill.row.prefill_target
            scheduler.prefilled(prefill)
        for batch in scheduler.batches:
            scheduler.settle(batch)
    return rows


class Costs(unittest.TestCase):
    def test_row_bytes_counts_windows_and_states(self) -> None:
        memory = MemoryPlan(10_000, 0, 0, (CacheCost(2.0), CacheCost(3.0, tokens_max=100), CacheCost(0, None, 500)))
        self.assertEqual(memory.row_bytes(1000), 2 * (1000 + GROWTH) + 3 * 100 + 500)
        self.assertEqual(memory.per_token, 5.0)
        self.assertEqual(memory.tokens_max(), (10_000 - 500 - 300) // 2 - GROWTH)

    def test_tokens_max_is_the_longest_row_that_fits(self) -> None:
        memory = plan(5000)
        self.assertLessEqual(memory.row_bytes(memory.tokens_max()), 5000)
        self.assertGreater(memory.row_bytes(memory.tokens_max() + 1), 5000)
        self.assertEqual(plan(10).tokens_max(), 0)

    def test_chunk_tokens_max_keeps_attention_within_its_share(self) -> None:
        memory = MemoryPlan(0, 0, 1_000_000, (), score_bytes=100)
        for position in (0, 50, 1000, 100_000):
            count = memory.chunk_tokens_max(position)
            self.assertGreaterEqual(count, 1)
            if count > 1:
                self.assertLessEqual(count * (position + count) * 100, 500_000)
        self.assertGreater(memory.chunk_tokens_max(0), memory.chunk_tokens_max(1000))


class Batches(unittest.TestCase):
    def test_rows_share_a_step_until_padding_costs_more_than_weights(self) -> None:
        scheduler = Scheduler(plan(weights=1000), 64, True, True)
        run(scheduler, 10, 20, 30, 900, 15, 880, 25)
        widths = sorted(sorted(len(r.prompt) for r in batch.rows) for batch in scheduler.batches)
        self.assertEqual(widths, [[10, 15, 20, 25, 30], [880, 900]])

    def test_a_single_long_and_a_single_short_row_may_share(self) -> None:
        scheduler = Scheduler(plan(weights=1000), 64, True, True)
        run(scheduler, 10, 900)
        self.assertEqual(len(scheduler.batches), 1)

    def test_rows_never_share_when_they_may_not(self) -> None:
        scheduler = Scheduler(plan(), 64, False, False)
        run(scheduler, 10, 10, 10)
        self.assertEqual(len(scheduler.batches), 3)
        self.assertIsNone(scheduler.mergeable())

    def test_mergeable_finds_what_has_become_cheap(self) -> None:
        scheduler = Scheduler(plan(weights=1000), 64, True, True)
        rows = run(scheduler, 10, 10, 10, 500)
        self.assertEqual([len(batch.rows) for batch in scheduler.batches], [3, 1])
        self.assertIsNone(scheduler.mergeable())
        for gone in rows[:2]:
            scheduler.leave(scheduler.batches[0], gone)
        self.assertIsNone(scheduler.mergeable(), "not before the engine has let them go")
        scheduler.settle(scheduler.batches[0])
        pair = scheduler.mergeable()
        self.assertIsNotNone(pair)
        scheduler.merged(*pair)
        self.assertEqual([len(batch.rows) for batch in scheduler.batches], [2])


class Admission(unittest.TestCase):
    def test_rows_are_let_in_by_age_and_number(self) -> None:
        scheduler = Scheduler(plan(), 3, True, True)
        for order in (2, 0, 3, 1):
            scheduler.add(row(order, 10))
        self.assertEqual([p.row.order for p in scheduler.admit()], [0, 1, 2])
        self.assertEqual([r.order for r in scheduler.waiting], [3])

    def test_so_many_prompts_are_read_by_turns(self) -> None:
        scheduler = Scheduler(plan(), 100, True, True)
        for order in range(20):
            scheduler.add(row(order, 10))
        self.assertEqual(len(scheduler.admit()), PREFILLS_MAX)

    def test_a_row_waits_for_memory_and_those_behind_it_wait_too(self) -> None:
        scheduler = Scheduler(plan(2600), 64, True, True)
        run(scheduler, 1000)
        scheduler.add(row(5, 2000))
        scheduler.add(row(6, 10))
        self.assertEqual(scheduler.admit(), [])
        scheduler.remove("r0")
        scheduler.drop_empty()
        self.assertEqual([p.row.order for p in scheduler.admit()], [5])

    def test_a_row_alone_is_always_let_in(self) -> None:
        scheduler = Scheduler(plan(2000), 64, True, True)
        scheduler.add(row(0, 1700))
        self.assertEqual(len(scheduler.admit()), 1)
        self.assertIsNone(scheduler.overdrawn())

    def test_the_youngest_gives_way_and_returns_when_the_others_can_finish(self) -> None:
        scheduler = Scheduler(plan(2000), 64, True, True)
        rows = run(scheduler, 100, 100)
        self.assertEqual(len(scheduler.decoding), 2)
        self.assertIsNone(scheduler.overdrawn())
        for each in rows:
            each.tokens_max = 1500
            each.ids = [1] * 700
        self.assertIs(scheduler.overdrawn(), rows[1])
        scheduler.remove("r1")
        rows[1].gave_up = True
        scheduler.add(rows[1])
        self.assertIsNone(scheduler.overdrawn())
        self.assertEqual(scheduler.admit(), [])
        scheduler.remove("r0")
        scheduler.drop_empty()
        self.assertEqual([p.row for p in scheduler.admit()], [rows[1]])

    def test_remove_says_where_a_row_was(self) -> None:
        scheduler = Scheduler(plan(), 3, True, True)
        run(scheduler, 10)
        scheduler.add(row(5, 10))
        scheduler.admit()
        scheduler.add(row(6, 10))
        places = [scheduler.remove(name) for name in ("r0", "r5", "r6", "r7")]
        self.assertEqual([place and place[1] for place in places], ["decoding", "prefill", "waiting", None])


class Reading(unittest.TestCase):
    def test_short_prompts_are_not_held_up_by_long_ones(self) -> None:
        scheduler = Scheduler(plan(), 64, True, False)
        scheduler.add(row(0, 5000))
        scheduler.add(row(1, 20))
        scheduler.admit()
        turns = []
        for _ in range(4):
            turns.append(scheduler.next_prefill().row.order)
            scheduler.take_turn()
        self.assertEqual(sorted(turns), [0, 0, 1, 1])

    def test_beside_takes_short_fresh_prompts_that_fit_one_pass(self) -> None:
        scheduler = Scheduler(plan(), 64, True, True)
        for order, length in enumerate((21, 31, 400, 11, 41)):
            scheduler.add(row(order, length))
        prefills = scheduler.admit()
        self.assertEqual([p.row.order for p in scheduler.beside(prefills[0], 100)], [0, 1, 3])
        self.assertEqual([p.row.order for p in scheduler.beside(prefills[2], 100)], [2])
        prefills[1].done = 5
        self.assertEqual([p.row.order for p in scheduler.beside(prefills[0], 100)], [0, 3])
        one_by_one = Scheduler(plan(), 64, True, False)
        one_by_one.prefills = prefills
        self.assertEqual(one_by_one.beside(prefills[0], 100), [prefills[0]])


class Paces(unittest.TestCase):
    def test_chunks_follow_the_measured_speed(self) -> None:
        pace = Pace(1000, 100)
        self.assertEqual(pace.chunk_tokens(5000, decoding=False), 60)
        for _ in range(12):
            count = pace.chunk_tokens(5000, decoding=False)
            pace.read(count, count / 1000, decoding=False)
        self.assertAlmostEqual(pace.chunk_tokens(5000, decoding=False), 600, delta=10)
        for _ in range(12):
            count = pace.chunk_tokens(5000, decoding=False)
            pace.read(count, count / 50, decoding=False)
        self.assertAlmostEqual(pace.chunk_tokens(5000, decoding=False), 30, delta=3)

    def test_no_chunk_is_planned_beyond_its_limit(self) -> None:
        for limit in (100, 1000):
            pace = Pace(limit, 1234)
            for decoding in (True, False):
                self.assertLessEqual(pace.chunk_tokens(10**6, decoding) / 1234, limit / 1000)

    def test_answers_get_as_much_time_as_a_long_prompt(self) -> None:
        pace = Pace(1000, 1000)
        reading = writing = 0.0
        for _ in range(500):
            count = pace.chunk_tokens(10**6, decoding=True)
            if count:
                pace.read(count, count / 1000, decoding=True)
                reading += count / 1000
            pace.wrote(0.05)
            writing += 0.05
        self.assertLessEqual(reading, writing + 1.25)  # the debt that may be run up first
        self.assertGreater(reading, 0.75 * writing)

    def test_long_prompts_are_read_however_many_short_ones_come(self) -> None:
        pace = Pace(1000, 1000)
        scheduler = Scheduler(plan(), 64, True, False)
        scheduler.add(row(0, 50_000))
        read = 0
        for order in range(1, 200):
            scheduler.add(row(order, 101))
            scheduler.admit()
            prefill = scheduler.next_prefill()
            count = min(pace.chunk_tokens(prefill.left, decoding=True), prefill.left)
            if count:
                pace.read(count, count / 1000, decoding=True)
                scheduler.take_turn()
                prefill.done += count
                if prefill.row.order == 0:
                    read += count
                elif prefill.left == 0:
                    scheduler.prefills.remove(prefill)
            pace.wrote(0.05)
        self.assertGreater(read, 4000)

    def test_short_prompts_may_run_up_one_chunk_of_debt(self) -> None:
        pace = Pace(1000, 1000)
        read = 0.0
        while pace.chunk_tokens(100, decoding=True):
            pace.read(100, 0.1, decoding=True)
            read += 0.1
        self.assertAlmostEqual(read, 1.0, delta=0.11)
        self.assertGreater(pace.chunk_tokens(100, decoding=False), 0)

    def test_chunks_do_not_shrink_to_nothing_where_every_pass_costs_a_second(self) -> None:
        pace = Pace(1000, 100)
        for _ in range(20):
            count = pace.chunk_tokens(5000, decoding=True) or 1
            pace.read(count, 1 + count / 1000, decoding=False)
        self.assertEqual(pace.chunk_tokens(5000, decoding=False), CHUNK_TOKENS_MIN)

    def test_a_short_rest_does_not_spoil_the_estimate(self) -> None:
        pace = Pace(1000, 1000)
        pace.read(3, 0.02, decoding=False)
        self.assertEqual(pace.tokens_per_second, 1000)


if __name__ == "__main__":
    unittest.main()
