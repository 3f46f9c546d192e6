"""The worker as a process, with the scripted engine: frames in, frames out, and how it ends."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

from bushel_worker.scripted import END

from .rank import ROOT, Rank, load_frame, submit_frame


def script(**fields: Any) -> str:
    """A script file; the tests' temporary folder goes when the interpreter does."""
    handle, path = tempfile.mkstemp(".json", dir=FOLDER.name)
    with os.fdopen(handle, "w") as out:
        json.dump(fields, out)
    return path


FOLDER = tempfile.TemporaryDirectory()


def fast(**fields: Any) -> str:
    return script(**{"tokensPerSecond": 2000, **fields})


class Answers(unittest.TestCase):
    def test_it_says_ready_before_anything_is_asked_and_answers_then(self) -> None:
        with Rank(load_frame(fast(say="Grüße aus 日本 🙂"))) as rank:
            kinds = [frame["kind"] for frame in rank.seen]
            self.assertEqual(kinds[-1], "ready")
            self.assertEqual({f["phase"] for f in rank.seen if f["kind"] == "progress"}, {"start", "load", "canary"})
            rank.send(submit_frame("a"))
            answer = rank.answer("a")
            self.assertEqual((answer.text(), answer.reason), ("Grüße aus 日本 🙂", "stop"))
            self.assertEqual(answer.accepted["promptTokens"], len("user: Hello\nassistant: "))
            self.assertEqual([row["position"] for row in answer.rows], list(range(len(answer.text().encode()))))

    def test_answers_depend_on_prompt_and_seed_alone(self) -> None:
        with Rank(load_frame(fast())) as one, Rank(load_frame(fast())) as other:
            texts = []
            for rank in (one, other):
                rank.send(submit_frame("a", "first"))
                rank.send(submit_frame("b", "second"))
                rank.send(submit_frame("c", "first", sampling={"seed": "8"}))
                texts.append([rank.answer(name).text() for name in "abc"])
            self.assertEqual(texts[0], texts[1])
            self.assertEqual(len(set(texts[0])), 3)

    def test_a_resumed_attempt_says_the_rest(self) -> None:
        with Rank(
            load_frame(fast(say="<think>hm 日本</think>so it is: 🙂 END and more"), rowsMax=64, waitingMax=64)
        ) as rank:
            rank.send(submit_frame("whole", stop=["END"]))
            whole = rank.answer("whole")
            for cut in range(len(whole.tokens)):
                rank.send(submit_frame(str(cut), stop=["END"], replay=whole.tokens[:cut]))
            for cut in range(len(whole.tokens)):
                rest = rank.answer(str(cut))
                wanted = [{**row, "attempt": str(cut)} for row in whole.rows[cut:]]
                self.assertEqual((rest.rows, rest.end["parts"], rest.reason), (wanted, whole.end["parts"], "stop"))
                self.assertEqual(rest.end["completionTokens"], whole.end["completionTokens"])
            self.assertEqual((whole.text("reasoning"), whole.text()), ("hm 日本", "so it is: 🙂 "))

    def test_tool_calls_are_parts(self) -> None:
        say = 'ok <tool_call>{"name": "clock", "arguments": {"zone": "CET"}}</tool_call>'
        with Rank(load_frame(fast(say=say))) as rank:
            rank.send(submit_frame("a"))
            answer = rank.answer("a")
            self.assertEqual(answer.parts[-1], {"type": "tool-call", "name": "clock", "arguments": '{"zone": "CET"}'})
            self.assertEqual(answer.reason, "tool-calls")
            rank.send(submit_frame("b", tokensMax=30))
            self.assertEqual((rank.answer("b").text(), rank.answer("b").reason), (say[:30], "length"))

    def test_limits_of_one_request(self) -> None:
        with Rank(load_frame(fast(say="abcdef"))) as rank:
            rank.send(submit_frame("a", tokensMax=3))
            rank.send(submit_frame("b", ignoreEos=True, tokensMax=9))
            rank.send(submit_frame("c", logprobs=2))
            self.assertEqual((rank.answer("a").text(), rank.answer("a").reason), ("abc", "length"))
            self.assertEqual(rank.answer("b").text(), "abcdef...")
            told = rank.answer("c").rows[0]["logprob"]
            self.assertEqual((told["text"], told["bytes"], len(told["top"])), ("a", [97], 2))

    def test_cancel_ends_an_answer(self) -> None:
        with Rank(load_frame(script(tokens=100000))) as rank:
            rank.send(submit_frame("a"))
            rank.next("step")
            rank.send({"kind": "cancel", "attempt": "a"})
            self.assertEqual(rank.next("finished", attempt="a", seconds=1)["reason"], "cancelled")
            self.assertFalse(rank.next("pulse", seconds=1)["busy"])


class Refusals(unittest.TestCase):
    def test_what_can_never_be_served_is_refused_at_once(self) -> None:
        limits = dict(contextTokensMax=300, memoryBytesMax=500_000)  # 1000 bytes a token, 256 kept to grow
        with Rank(load_frame(script(tokensPerSecond=300), **limits)) as rank:
            for index in range(3):  # the engine is busy meanwhile
                rank.send(submit_frame(f"busy{index}", tokensMax=100, ignoreEos=True))
            bad = {
                "prompt-too-long": submit_frame("1", "x" * 400),
                "request-too-large": submit_frame("2", "x" * 50, tokensMax=250),
                "bad-grammar": submit_frame("3", grammar={"kind": "json-object"}),
                "bad-request": submit_frame("4", sampling={"logitBias": [[300, 1]]}),
                "bad-prompt": submit_frame("5", "lone \ud800 surrogate"),
            }
            for code, frame in bad.items():
                sent = time.monotonic()
                rank.send(frame)
                told = rank.next("failed", attempt=frame["attempt"], seconds=2)
                self.assertEqual(told["code"], code)
                self.assertLess(told["at"] - sent, 0.5)
            self.assertIn("244 tokens", next(f for f in rank.seen if f.get("code") == "request-too-large")["message"])
            rank.send(submit_frame("6", "x" * 50))  # names no length: gets what fits
            self.assertEqual(rank.answer("6").end["kind"], "finished")

    def test_more_than_may_wait_are_refused(self) -> None:
        with Rank(load_frame(script(tokens=1000), rowsMax=2, waitingMax=3)) as rank:
            for index in range(8):
                rank.send(submit_frame(str(index)))
            told = [rank.next("failed", seconds=2) for _ in range(3)]
            self.assertEqual([(f["attempt"], f["code"]) for f in told], [(n, "overloaded") for n in "567"])
            rank.send({"kind": "cancel", "attempt": "0"})
            rank.next("finished", attempt="0")
            rank.send(submit_frame("9"))
            rank.next("accepted", attempt="9", seconds=2)

    def test_junk_is_answered_and_harms_nobody(self) -> None:
        chance = random.Random(4)
        with Rank(load_frame(script(tokensPerSecond=200, tokens=150))) as rank:
            rank.send(submit_frame("good"))
            base = json.dumps(submit_frame("junk")).encode()
            for _ in range(300):
                line = bytearray(base)
                for _ in range(chance.randint(1, 20)):
                    line[chance.randrange(len(line))] = chance.choice(b'"{}[],:0123456789abcnulltrue\x00\xff')
                rank.send(bytes(line).replace(b"\n", b" "))
            for line in (b"", b"   ", b"null", b"[]", b"{}", b"\xff\xfe", b"[" * 50_000, b'{"kind":"load"}', b'"' * 9):
                rank.send(line)
            for frame in (load_frame(), {"kind": "relayed", "from": 1, "body": {}}, {"kind": "cancel", "attempt": "?"}):
                rank.send(frame)
            rank.send(submit_frame("after"))
            self.assertEqual(rank.answer("good").reason, "stop")
            self.assertEqual(rank.answer("after").reason, "stop")
            failed = [f for f in rank.seen if f["kind"] == "failed"]
            self.assertGreater(len(failed), 200)
            self.assertNotIn(None, [f["attempt"] for f in failed])

    def test_an_attempt_submitted_twice_runs_once(self) -> None:
        with Rank(load_frame(fast(say="once"))) as rank:
            rank.send(submit_frame("a", tokensMax=4))
            rank.send(submit_frame("a", tokensMax=4))
            rank.answer("a")
            time.sleep(0.1)
            ends = [f for f in rank.seen if f["kind"] in ("finished", "failed")]
            self.assertIn(len(ends), (1, 2))  # the second may come when the first has ended
            self.assertEqual({f["kind"] for f in ends}, {"finished"})

    def test_prompts_and_answers_are_not_logged(self) -> None:
        with Rank(load_frame(fast(say="secret-answer"))) as rank:
            rank.send(submit_frame("a", "secret-question"))
            rank.send(json.dumps(submit_frame("b", "secret-question")).encode()[:-5])
            rank.send(submit_frame("c", "secret-question \ud800"))
            rank.send(submit_frame("d", "secret-question", grammar={"kind": "regex", "pattern": "secret-pattern"}))
            rank.answer("a")
            rank.answer("d")
        self.assertNotIn(b"secret", rank.stderr)
        self.assertIn(b"refused", rank.stderr)

    def test_a_load_that_cannot_work_ends_the_rank_with_a_reason(self) -> None:
        staged = load_frame()
        for first, words in (
            (b"nonsense", "not JSON"),
            ({"kind": "cancel", "attempt": "a"}, "must be load"),
            (load_frame(script(failLoad="no such grain")), "no such grain"),
            (load_frame("/nowhere", "mlx"), "does not exist"),
            ({**staged, "stage": {"index": 0, "count": 2, "layers": [0, 1]}}, "no address to listen at"),
        ):
            rank = Rank(None)
            rank.send(first)
            told = rank.next("failed", seconds=60)
            self.assertIsNone(told["attempt"])
            self.assertIn(words, told["message"])
            self.assertEqual(rank.process.wait(5), 1)
            rank.close()


class Life(unittest.TestCase):
    def test_it_goes_when_its_pipe_closes(self) -> None:
        for fields in ({}, {"hangAt": 3}, {"spinAt": 3}):
            with Rank(load_frame(script(tokens=100000, tokensPerSecond=500, **fields))) as rank:
                rank.send(submit_frame("a"))
                rank.next("step")
                time.sleep(0.05)
                closed = time.monotonic()
                self.assertEqual(rank.close(), 0)
                self.assertLess(time.monotonic() - closed, 1)

    def test_it_goes_when_told_and_when_nobody_reads(self) -> None:
        with Rank(load_frame(fast())) as rank:
            rank.send({"kind": "close"})
            self.assertEqual(rank.process.wait(2), 0)
        with Rank(load_frame(fast())) as rank:
            rank.process.send_signal(signal.SIGTERM)
            self.assertEqual(rank.process.wait(2), -signal.SIGTERM)

    def test_a_script_can_crash_raise_and_write_garbage(self) -> None:
        with Rank(load_frame(fast(crashAt=5))) as rank:
            rank.send(submit_frame("a"))
            with self.assertRaises(EOFError):
                rank.next("finished")
            self.assertEqual(rank.process.wait(2), -signal.SIGKILL)
        with Rank(load_frame(fast(raiseAt=5))) as rank:
            rank.send(submit_frame("a"))
            told = rank.next("failed", seconds=5)
            self.assertEqual((told["attempt"], told["code"]), (None, "engine-failed"))
            self.assertEqual(rank.process.wait(2), 1)
        with Rank(load_frame(fast(garbageAt=5, say="0123456789"))) as rank:
            rank.send(submit_frame("a"))
            self.assertEqual(rank.answer("a").text(), "0123456789")
            self.assertEqual(len(rank.junk), 2)

    def test_a_hung_engine_is_silent_and_a_slow_one_is_not(self) -> None:
        with Rank(load_frame(fast(hangAt=5))) as rank:
            rank.send(submit_frame("a"))
            time.sleep(0.7)
            self.assertLess(rank.seen[-1]["at"], time.monotonic() - 0.5)
        with Rank(load_frame(script(prefillTokensPerSecond=100))) as rank:
            asked = time.monotonic()
            rank.send(submit_frame("a", "x" * 150, tokensMax=1))
            rank.answer("a")
            heard = [asked] + [f["at"] for f in rank.seen if f["at"] > asked]
            self.assertGreater(heard[-1] - asked, 1.4)
            self.assertLess(max(b - a for a, b in zip(heard, heard[1:])), 0.45)
            pulses = [f for f in rank.seen if f["kind"] == "pulse" and f["at"] > asked and f["busy"]]
            self.assertGreater(len(pulses), 2)
            self.assertEqual(len({f["step"] for f in pulses}), len(pulses))

    def test_idle_it_says_so_once_and_uses_no_time(self) -> None:
        with Rank(load_frame(fast(say="x"))) as rank:
            rank.send(submit_frame("a"))
            rank.answer("a")
            self.assertFalse(rank.next("pulse", seconds=1)["busy"])
            said, used = len(rank.seen), cpu_seconds(rank.process.pid)
            time.sleep(0.8)
            self.assertEqual(len(rank.seen), said)
            self.assertLess(cpu_seconds(rank.process.pid) - used, 0.03)

    def test_stats_come_about_once_a_second(self) -> None:
        with Rank(load_frame(script(tokens=60))) as rank:
            rank.send(submit_frame("a"))
            rank.answer("a")
            rank.next("pulse", seconds=1)
            stats = [f for f in rank.seen if f["kind"] == "stats"]
            self.assertIn(len(stats), (3, 4))
            self.assertEqual(stats[0]["rows"], 1)
            self.assertAlmostEqual(stats[1]["decodeTokensPerSecond"], 20, delta=4)
            self.assertEqual((stats[-1]["rows"], stats[-1]["kvBytes"]), (0, 0))

    def test_two_hundred_streams_are_light(self) -> None:
        with Rank(load_frame(script(tokens=50), rowsMax=200)) as rank:
            used = cpu_seconds(rank.process.pid)
            began = time.monotonic()
            for index in range(200):
                rank.send(submit_frame(str(index), f"question {index}"))
            answers = [rank.answer(str(index)) for index in range(200)]
            seconds = time.monotonic() - began
            self.assertEqual({len(answer.tokens) for answer in answers}, {50})
            self.assertEqual(END in answers[0].tokens, False)
            self.assertGreater(len({answer.text() for answer in answers}), 190)
            self.assertLess(seconds, 5)
            self.assertLess((cpu_seconds(rank.process.pid) - used) / seconds, 0.6)

    def test_the_scripted_engine_needs_no_heavy_library(self) -> None:
        check = (
            "import sys, bushel_worker.__main__, bushel_worker.scripted, bushel_worker.canary;"
            "print([m for m in ('mlx', 'mlx_lm', 'numpy', 'transformers') if m in sys.modules])"
        )
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        told = subprocess.run(
            [sys.executable, "-c", check], env=environment, capture_output=True, text=True, check=True
        )
        self.assertEqual(told.stdout.strip(), "[]")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    unittest.main()
