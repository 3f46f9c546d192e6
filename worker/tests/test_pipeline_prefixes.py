"""Kept prefixes of a pipeline: the head decides, every stage keeps, begins and drops the same entries."""

import random
import unittest
from dataclasses import replace
from typing import Any

from bushel_worker.stage import Stage
from bushel_worker.stage_rows import StageRows

from .loopback import Loopback
from .test_engine import prompt
from .tiny import Drive, tiny_model, tiny_service

EDGES = [0, 2, 3, 6]


class Prefixes(unittest.TestCase):
    def setUp(self) -> None:
        self.whole = tiny_service(Stage(tiny_model()))
        self.loopback = Loopback([Stage(tiny_model(), span) for span in zip(EDGES, EDGES[1:])])
        self.loopback.engine.reuses_prefixes = True
        limits = replace(self.whole.limits, prefix_cache_bytes_max=1 << 30)
        service = replace(self.whole, engine=self.loopback.engine, spread=3, limits=limits, trims=True)
        self.drive = Drive(service, chunk=16)

    def submit(self, name: str, ids: list[int], count: int) -> None:
        row = self.drive.submit(name, ids, count)
        row.scope = "a"
        row.prefix = self.drive.loop.prefixes.find("a", [*row.prompt, *row.ids])

    def cold(self, ids: list[int], count: int) -> list[int]:
        drive = Drive(self.whole)
        drive.submit("cold", ids, count)
        return drive.run().tokens("cold")

    def entries(self) -> list[set[int]]:
        return [set(held.kept) for held in self.loopback.held]

    def check_books(self) -> None:
        """Nothing but entries is left, the same at every stage, and as many as the head believes."""
        known = set(self.drive.loop.prefixes._entries)
        for held in self.loopback.held:
            self.assertEqual((held.batches, held.filling, held.tokens, set(held.kept)), ({}, {}, {}, known))
        for holding in [self.loopback.engine._holding, *(service._holding for service in self.loopback.services)]:
            self.assertEqual((holding.lengths, holding._entries, holding._kept._rows), ({}, known, {}))
            self.assertEqual(holding._kept._held, sum(map(len, holding._kept._entries.values())))

    def test_a_second_turn_says_what_it_would_have_said_cold(self) -> None:
        first = prompt(1, 60)
        self.submit("one", first, 20)
        self.drive.run()
        told = self.drive.tokens("one")
        for cut in (80, 60, 50, 33):
            second = [*first, *told][:cut] + prompt(2, 9)
            self.submit(f"two{cut}", second, 12)
            self.drive.run()
            self.assertEqual(self.drive.tokens(f"two{cut}"), self.cold(second, 12), cut)
            self.assertGreaterEqual(self.drive.end(f"two{cut}")["cachedTokens"], cut - 1)
        self.check_books()

    def test_conversations_that_come_go_and_are_cancelled_equal_cold_ones(self) -> None:
        chance = random.Random(3)
        talks = [prompt(index, 40 + 7 * index) for index in range(5)]
        asked: dict[str, list[int]] = {}
        for turn in range(14):
            index = chance.randrange(5)
            name = f"t{turn}"
            asked[name] = [*talks[index], *prompt(50 + turn, chance.randint(1, 12))]
            self.submit(name, asked[name], 10)
            self.drive.rounds(chance.randint(0, 9))
            if turn % 5 == 4:
                self.drive.cancel(name)
        self.drive.run()
        for name, ids in asked.items():
            got = self.drive.tokens(name)
            self.assertEqual(got, self.cold(ids, 10)[: len(got)], name)
            self.assertTrue(len(got) == 10 or self.drive.end(name)["reason"] == "cancelled")
        self.assertGreater(sum(self.drive.end(name)["cachedTokens"] for name in asked), 200)
        self.check_books()

    def lose(self, victim: int) -> tuple[int, int]:
        """A later stage is replaced by one that holds nothing; the loop goes on. Rows read anew, tokens replayed."""
        service = self.loopback.services[victim - 1]
        service._work.stage = StageRows(Stage(tiny_model(), (EDGES[victim], EDGES[victim + 1])))
        self.loopback.held[victim] = service._work.stage
        service._holding.__init__(service._work.stage, 1 << 20)  # type: ignore[misc]
        service._rows.clear()
        told: list[Any] = []

        def recover(wanted: dict[Any, int]) -> set[Any]:
            anew, again = self.loopback.engine.recover(self.loopback.ring, wanted, 7)
            told.append((len(anew), again))
            return anew

        self.drive.loop.resume(recover)
        return told[0]

    def test_a_loss_forgets_all_entries_and_rows_that_began_from_one_go_on(self) -> None:
        first = prompt(1, 60)
        self.submit("one", first, 8)
        self.drive.run()
        second = [*first, *self.drive.tokens("one"), *prompt(2, 5)]
        self.submit("two", second, 30)
        self.drive.rounds(8)
        self.submit("promised", second, 5)  # an entry that will not be there when it begins
        anew, again = self.lose(1)
        self.assertEqual(anew, 0)
        self.assertGreaterEqual(again, 60)
        self.assertEqual(self.entries(), [set(), set(), set()])
        self.drive.run()
        self.assertEqual(self.drive.tokens("two"), self.cold(second, 30))
        self.assertEqual(self.drive.tokens("promised"), self.cold(second, 5))
        self.submit("three", second, 5)
        self.drive.run()
        self.assertEqual(self.drive.tokens("three"), self.cold(second, 5))
        self.check_books()


if __name__ == "__main__":
    unittest.main()
