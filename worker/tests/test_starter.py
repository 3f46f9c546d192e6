"""The real small model, through a real worker process."""

import time
import unittest
from typing import Any

from .rank import Answer, Rank, load_frame, submit_frame
from .starter import starter_folder

STORIES = ["Tell me about cats.", "Count to ten.", "What is rain?", "Write a poem about the sea and the moon."]
SAMPLED: dict[str, Any] = {"temperature": 0.9, "topP": 0.9, "repetitionPenalty": 1.1, "seed": "11"}


class Starter(unittest.TestCase):
    rank: Rank

    @classmethod
    def setUpClass(cls) -> None:
        cls.rank = Rank(load_frame(str(starter_folder()), "mlx", rowsMax=8)).__enter__()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.rank.close()

    def ask(self, attempt: str, prompt: Any, **named: Any) -> Answer:
        self.rank.send(submit_frame(attempt, prompt, **named))
        return self.rank.answer(attempt)

    def test_it_knows_the_capital_of_france(self) -> None:
        answer = self.ask("paris", "What is the capital of France?", tokensMax=30)
        self.assertIn("Paris", answer.text())
        self.assertEqual(answer.reason, "stop")
        self.assertNotIn("<|im_end|>", answer.text())
        self.assertEqual(answer.end["completionTokens"], len(answer.tokens))

    def test_ready_tells_what_was_loaded(self) -> None:
        ready = self.rank.ready
        self.assertEqual((ready["contextTokens"], ready["vocabulary"], ready["batching"]), (8192, 49152, "merged"))
        self.assertEqual((ready["weightsBytes"], ready["kvBytesPerToken"]), (538060032, 46080))
        wanted = {"chat": True, "tools": False, "reasoning": False, "grammar": True, "embeddings": False}
        self.assertEqual(ready["abilities"], wanted)
        tested = [f["at"] for f in self.rank.seen if f["kind"] == "progress" and f["phase"] == "self-test"]
        self.assertLess(tested[1] - tested[0], 10)  # well below a second on an idle machine

    def test_rows_together_say_what_they_say_alone(self) -> None:
        asked = [dict(sampling=SAMPLED if index % 2 else {}, tokensMax=8) for index in range(4)]
        for index, story in enumerate(STORIES):
            self.rank.send(submit_frame(f"t{index}", story, **asked[index]))
        together = [self.rank.answer(f"t{index}") for index in range(4)]
        for index, story in enumerate(STORIES):
            alone = self.ask(f"s{index}", story, **asked[index])
            self.assertEqual(together[index].tokens, alone.tokens, story)
        sizes = [len(f["rows"]) for f in self.rank.seen if f["kind"] == "step"]
        self.assertGreater(max(sizes), 1)

    def test_a_resumed_attempt_continues_as_the_unbroken_one(self) -> None:
        named = dict(sampling=SAMPLED, tokensMax=12, stop=["zebra"])
        whole = self.ask("whole", STORIES[3], **named)
        for cut in (1, 5, 11):
            rest = self.ask(f"cut{cut}", STORIES[3], replay=whole.tokens[:cut], **named)
            self.assertEqual(rest.tokens, whole.tokens[cut:])
            self.assertEqual([row["parts"] for row in rest.rows], [row["parts"] for row in whole.rows[cut:]])

    def test_plain_text_goes_on_with_its_first_space(self) -> None:
        answer = self.ask("text", {"kind": "text", "text": "The capital of France is"}, tokensMax=2)
        self.assertTrue(answer.text().startswith(" "), answer.text())
        self.assertEqual(answer.accepted["promptTokens"], 5)

    def test_every_token_with_text_is_one_part(self) -> None:
        answer = self.ask("parts", STORIES[0], tokensMax=12)
        self.assertEqual([len(row["parts"]) for row in answer.rows], [1] * 12)

    def test_log_probabilities_name_the_tokens(self) -> None:
        answer = self.ask("logs", "What is the capital of France?", tokensMax=4, logprobs=3)
        for row in answer.rows:
            told = row["logprob"]
            self.assertEqual(bytes(told["bytes"]).decode(), told["text"])
            self.assertEqual(told["top"][0]["token"], row["token"])  # greedy
            self.assertAlmostEqual(told["top"][0]["logprob"], told["logprob"], places=5)
            self.assertEqual(len(told["top"]), 3)

    def test_the_template_refuses_what_it_cannot_render(self) -> None:
        chat = {
            "kind": "chat",
            "messages": [{"role": "user", "content": "x"}],
            "tools": [],
            "variables": {},
            "nowMs": 0,
        }
        for number, prompt in enumerate(
            (
                {**chat, "variables": {"chat_template": "{{ 7*7 }}"}},
                {**chat, "messages": [{"role": "user", "content": "\ud800"}]},
                {"kind": "ids", "ids": [49152]},
                {"kind": "text", "text": ""},
            )
        ):
            self.assertEqual(self.ask(f"bad{number}", prompt).end["code"], "bad-prompt", prompt)

    def test_a_long_prompt_does_not_stop_the_others(self) -> None:
        words = "bushel " * 900
        self.rank.send(submit_frame("short", STORIES[0], tokensMax=30, ignoreEos=True))
        self.rank.next("step")
        self.rank.send(submit_frame("long", words, tokensMax=1))
        self.rank.answer("long", 90)
        answer = self.rank.answer("short", 90)
        reading = [f for f in self.rank.seen if f["kind"] == "progress" and f["attempt"] == "long"]
        self.assertGreater(len(reading), 2)
        times = [f["at"] for f in self.rank.seen if f["kind"] == "step" and f["rows"][0]["attempt"] == "short"]
        during = [at for at in times if reading[0]["at"] <= at <= reading[-1]["at"]]
        self.assertGreater(len(during), 1)
        self.assertEqual(len(answer.tokens), 30)

    def test_cancel_while_a_prompt_is_read_is_quick(self) -> None:
        self.rank.send(submit_frame("gone", "bushel " * 2000))
        self.rank.next("progress", attempt="gone")
        sent = time.monotonic()
        self.rank.send({"kind": "cancel", "attempt": "gone"})
        self.assertEqual(self.rank.next("finished", attempt="gone", seconds=5)["reason"], "cancelled")
        self.assertLess(time.monotonic() - sent, 3)  # one chunk, of a second at most on an idle machine

    def test_nothing_of_a_prompt_is_logged(self) -> None:
        self.ask("quiet", "a-secret-word", tokensMax=1)
        self.assertNotIn(b"a-secret-word", self.rank.stderr)


class Memory(unittest.TestCase):
    def test_the_worker_stays_within_what_it_was_given(self) -> None:
        limit = 760_000_000
        with Rank(load_frame(str(starter_folder()), "mlx", rowsMax=8, memoryBytesMax=limit)) as rank:
            self.assertLess(rank.ready["contextTokens"], 8192)
            rank.send(submit_frame("big", "x", tokensMax=6000))
            told = rank.next("failed", attempt="big")
            self.assertEqual(told["code"], "request-too-large")
            self.assertRegex(told["message"], r"need \d+ MB of cache, but only \d+ MB")
            for index in range(6):
                rank.send(submit_frame(str(index), "bushel " * (20 + 30 * index), tokensMax=4, ignoreEos=True))
            for index in range(6):
                self.assertEqual(len(rank.answer(str(index)).tokens), 4)
            self.assertLess(max(f["peakBytes"] for f in rank.seen if f["kind"] == "stats"), limit)
        with self.assertRaisesRegex(AssertionError, "its weights need 538 MB but this rank may use 500 MB"):
            Rank(load_frame(str(starter_folder()), "mlx", memoryBytesMax=500_000_000)).__enter__()


if __name__ == "__main__":
    unittest.main()
