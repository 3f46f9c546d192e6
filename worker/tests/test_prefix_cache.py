"""Kept prefixes: which one is found, what is dropped first, and that reusing one changes no token."""

import random
import unittest
from dataclasses import replace
from typing import Any

from bushel_worker.prefix_cache import TOKENS_MIN, Hit, PrefixCache

from .rank import Answer, Rank, load_frame, submit_frame
from .starter import starter_folder
from .test_engine import TinyCase, prompt
from .tiny import Drive


def cache(bytes_max: int = 10_000, trims: bool = True) -> PrefixCache:
    return PrefixCache(bytes_max, lambda tokens: tokens, trims)


class Entries(unittest.TestCase):
    def test_the_longest_shared_beginning_of_ones_own_scope_is_found(self) -> None:
        kept = cache()
        first = kept.add("a", [*range(100), 7, 7])
        kept.add("a", list(range(40)))
        kept.add("b", list(range(200)))
        self.assertEqual(kept.find("a", list(range(150))), Hit(first or 0, 100))
        self.assertIsNone(kept.find("c", list(range(150))))
        self.assertIsNone(kept.find("a", [9, *range(150)]))

    def test_the_last_token_is_always_read(self) -> None:
        kept = cache()
        kept.add("a", list(range(100)))
        hit = kept.find("a", list(range(100)))
        self.assertEqual(hit and hit.tokens, 99)

    def test_without_trimming_only_whole_entries_are_of_use(self) -> None:
        kept = cache(trims=False)
        kept.add("a", list(range(100)))
        self.assertIsNone(kept.find("a", [*range(90), 5, 5, 5]))
        hit = kept.find("a", list(range(120)))
        self.assertEqual(hit and hit.tokens, 100)

    def test_room_is_made_by_dropping_the_least_recently_used(self) -> None:
        kept = cache(bytes_max=250)
        made = [kept.add("a", [n] * 100) for n in range(2)]
        hit = kept.find("a", [0] * 60)
        assert hit is not None
        kept.settle(hit)
        kept.add("a", [2] * 100)
        self.assertEqual(kept.make_room(1000), [made[1]])
        self.assertEqual(kept.make_room(100), [made[0]])
        self.assertEqual(kept.size, 100)
        self.assertEqual(len(kept.make_room(0)), 1)
        self.assertEqual(kept.size, 0)

    def test_a_promised_entry_goes_last_and_its_asker_is_told(self) -> None:
        kept = cache()
        kept.add("a", [1] * 100)
        kept.add("a", [2] * 100)
        hit = kept.find("a", [1] * 60)
        assert hit is not None
        self.assertEqual(len(kept.make_room(150)), 1)
        self.assertTrue(kept.settle(hit))
        hit = kept.find("a", [1] * 60)
        assert hit is not None
        kept.make_room(0)
        self.assertFalse(kept.settle(hit))

    def test_a_longer_entry_replaces_what_it_goes_on_from(self) -> None:
        kept = cache()
        kept.add("a", list(range(50)))
        other = kept.add("b", list(range(50)))
        kept.add("a", list(range(80)))
        self.assertEqual(kept.make_room(10_000), [1])
        self.assertEqual((kept.size, other), (130, 2))

    def test_what_is_short_or_too_large_is_not_kept(self) -> None:
        kept = cache(bytes_max=100)
        self.assertIsNone(kept.add("a", [1] * (TOKENS_MIN - 1)))
        self.assertIsNone(kept.add("a", [1] * 101))

    def test_the_size_is_the_sum_of_its_entries_whatever_happens(self) -> None:
        chance, kept, promised = random.Random(5), cache(bytes_max=1000), []
        for _ in range(500):
            ids = [chance.randrange(2)] * chance.randrange(200)
            if chance.random() < 0.5:
                kept.add(chance.choice("ab"), ids)
            elif hit := kept.find(chance.choice("ab"), ids):
                promised.append(hit)
            if promised and chance.random() < 0.5:
                kept.settle(promised.pop())
            kept.make_room(chance.randrange(1500))
            self.assertEqual(kept.size, sum(entry.size for entry in kept._entries.values()))
            self.assertLessEqual(kept.size, 1000)


class Reuse(TinyCase):
    def keeping(self, **changes: Any) -> Drive:
        limits = replace(self.service.limits, prefix_cache_bytes_max=1 << 30)
        return self.drive(limits=limits, trims=True, **changes)

    def submit(self, drive: Drive, attempt: str, ids: list[int], count: int, **named: Any) -> None:
        row = drive.submit(attempt, ids, count, **named)
        row.scope = "a"
        row.prefix = drive.loop.prefixes.find("a", [*row.prompt, *row.ids])

    def drive(self, chunk: int = 16, **changes: Any) -> Drive:
        limits = changes.pop("limits", None)
        made = super().drive(chunk, **changes)
        if limits is None:
            return made
        return Drive(replace(made.service, limits=limits), chunk)

    def test_a_second_turn_says_what_it_would_have_said_cold(self) -> None:
        drive = self.keeping()
        first = prompt(1, 60)
        self.submit(drive, "one", first, 20)
        drive.run()
        told = drive.tokens("one")
        for cut in (80, 60, 50, 33):
            second = [*first, *told][:cut] + prompt(2, 9)
            self.submit(drive, f"two{cut}", second, 12)
            drive.run()
            cold = self.drive()
            cold.submit("cold", second, 12)
            self.assertEqual(drive.tokens(f"two{cut}"), cold.run().tokens("cold"), cut)
            self.assertGreaterEqual(drive.end(f"two{cut}")["cachedTokens"], cut - 1)
            self.assertEqual(drive.end("one")["cachedTokens"], 0)

    def test_rows_that_share_a_beginning_do_not_disturb_each_other(self) -> None:
        drive = self.keeping()
        base = prompt(3, 70)
        self.submit(drive, "base", base, 4)
        drive.run()
        tails = {f"t{n}": base + prompt(10 + n, 3 + 4 * n) for n in range(5)}
        for name, ids in tails.items():
            self.submit(drive, name, ids, 10)
        drive.rounds(4)
        drive.cancel("t2")
        drive.run()
        for name, ids in tails.items():
            cold = self.drive()
            cold.submit("cold", ids, 10)
            wanted = cold.run().tokens("cold")
            got = drive.tokens(name)
            self.assertEqual(got, wanted[: len(got)] if name == "t2" else wanted)

    def test_kept_caches_give_way_to_rows(self) -> None:
        row = self.service.memory.row_bytes(100)
        drive = self.keeping(capacity_bytes=2 * row)
        for n in range(6):
            self.submit(drive, f"r{n}", prompt(n, 60), 10)
            drive.run()
            self.assertLessEqual(drive.loop.prefixes.size, 2 * row)
        drive.submit("big", prompt(9, 150), 40)
        drive.run()
        self.assertEqual(len(drive.tokens("big")), 40)


class Starter(unittest.TestCase):
    def test_a_conversation_goes_on_from_its_cache_and_only_for_its_own_key(self) -> None:
        with Rank(load_frame(str(starter_folder()), "mlx", prefixCacheBytesMax=500_000_000)) as rank:

            def ask(attempt: str, scope: str, messages: list[dict[str, str]]) -> Answer:
                frame = submit_frame(attempt, tokensMax=12, cacheScope=scope)
                frame["prompt"]["messages"] = messages
                rank.send(frame)
                return rank.answer(attempt)

            talk = [{"role": "user", "content": "Tell me about the moon and the sea, and what they do to each other."}]
            first = ask("one", "a", talk)
            talk += [{"role": "assistant", "content": first.text()}, {"role": "user", "content": "And the sun?"}]
            warm, cold = ask("two", "a", talk), ask("three", "b", talk)
            self.assertEqual(warm.tokens, cold.tokens)
            self.assertEqual((first.end["cachedTokens"], cold.end["cachedTokens"]), (0, 0))
            self.assertGreaterEqual(warm.end["cachedTokens"], first.end["promptTokens"] - 1)
            assert warm.accepted is not None
            self.assertEqual(warm.accepted["cachedTokens"], warm.end["cachedTokens"])
            stats = [frame for frame in rank.seen if frame["kind"] == "stats"]
            self.assertGreater(stats[-1]["prefixCacheBytes"], 0)


if __name__ == "__main__":
    unittest.main()
