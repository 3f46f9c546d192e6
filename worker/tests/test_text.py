"""Text: characters are whole, stop strings never show, parts are typed, and a replay changes nothing."""

import itertools
import json
import random
import unittest
from typing import Any

from mlx_lm.generate import TextStateMachine

from bushel_worker.hub_language import MarkerSegmenter
from bushel_worker.scripted import ScriptedSegmenter
from bushel_worker.text import ByteDecoder, StopMatcher, TextPlan, WindowDecoder, Writer

BYTES = [bytes([number]) for number in range(256)]
MACHINE = TextStateMachine(
    {
        "normal": [("<think>", "reasoning"), ("<tool_call>", "tool")],
        "reasoning": [("</think>", "normal"), ("<tool_call>", "tool")],
        "tool": [("</tool_call>", "normal")],
    }
)
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Zürich"}}\n</tool_call>'
OTHER = '<tool_call>{"name": "clock", "arguments": {}}</tool_call>'


def tokens_of(text: str, size: int = 1, seed: int = 0) -> tuple[list[int], list[bytes]]:
    """Cuts the bytes of a text at random into tokens, characters split or not, with a table of its own."""
    raw, chance, pieces = text.encode(), random.Random(seed), []
    while raw:
        length = chance.randint(1, size)
        pieces.append(raw[:length])
        raw = raw[length:]
    table = sorted(set(pieces))
    return [table.index(piece) for piece in pieces], table


def writer(table: list[bytes], stops: list[str] | None = None, chat: bool = True, initial: str = "normal") -> Writer:
    plan = TextPlan(ByteDecoder(table), stops or [])
    if chat:
        plan.segmenter = MarkerSegmenter(MACHINE, initial)
        plan.parse_call = lambda text, tools: json.loads(text)
        plan.call_markers = ("<tool_call>", "</tool_call>")
    return Writer(plan)


def write(made: Writer, tokens: list[int], reason: str = "stop") -> tuple[list[list[dict[str, Any]]], list[Any], str]:
    """Parts by token, parts at the end, reason."""
    shown = []
    for token in tokens:
        shown.append(made.push(token))
        if made.stopped:
            reason = "stop"
            break
    end, told = made.finish(reason)
    return shown, end, told


def joined(shown: list[list[dict[str, Any]]], end: list[dict[str, Any]], kind: str = "content") -> str:
    return "".join(part["text"] for part in itertools.chain(*shown, end) if part["type"] == kind)


def calls(shown: list[list[dict[str, Any]]], end: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(p["name"], p["arguments"]) for p in itertools.chain(*shown, end) if p["type"] == "tool-call"]


class Decoders(unittest.TestCase):
    TEXT = "naïve 日本語 👩‍👩‍👧‍👦 é\u0301\n"

    def test_byte_decoder_never_splits_a_character(self) -> None:
        for size in (1, 2, 3, 5):
            tokens, table = tokens_of(self.TEXT, size, seed=size)
            decoder = ByteDecoder(table)
            pieces = [decoder.push(token) for token in tokens]
            self.assertEqual("".join(pieces), self.TEXT)
            self.assertNotIn("\ufffd", "".join(pieces))

    def test_byte_decoder_replaces_broken_bytes_at_once(self) -> None:
        decoder = ByteDecoder(BYTES)
        self.assertEqual([decoder.push(b) for b in (0xFF, 0x41, 0xE6, 0x41)], ["\ufffd", "A", "", "\ufffdA"])

    def test_byte_decoder_keeps_or_strips_the_first_space(self) -> None:
        table = [b" a", b" b"]
        for strip, wanted in ((False, " a b"), (True, "a b")):
            decoder = ByteDecoder(table, strip)
            self.assertEqual(decoder.push(0) + decoder.push(1), wanted)

    def test_byte_decoder_ignores_tokens_beyond_the_table(self) -> None:
        self.assertEqual(ByteDecoder([b"a"]).push(7), "")

    def test_window_decoder_gives_what_decoding_all_would_give(self) -> None:
        for size in (1, 2, 3):
            tokens, table = tokens_of(self.TEXT, size, seed=9)

            def decode(ids: list[int], table: list[bytes] = table) -> str:
                return b"".join(table[i] for i in ids).decode("utf-8", "replace")

            decoder = WindowDecoder(decode, frozenset())
            pieces = [decoder.push(token) for token in tokens]
            self.assertEqual("".join(pieces), self.TEXT)

    def test_window_decoder_is_silent_where_told(self) -> None:
        decoder = WindowDecoder(lambda ids: "".join("ab"[i] for i in ids), frozenset({1}))
        self.assertEqual([decoder.push(0), decoder.push(1), decoder.push(0)], ["a", "", "a"])


class Stops(unittest.TestCase):
    def test_stop_matcher_finds_a_stop_however_it_is_cut(self) -> None:
        text, stop = "one two STOP three", "STOP"
        for cuts in itertools.combinations(range(1, len(text)), 2):
            matcher, shown, stopped = StopMatcher([stop]), "", False
            for piece in (text[: cuts[0]], text[cuts[0] : cuts[1]], text[cuts[1] :]):
                if not stopped:
                    more, stopped = matcher.push(piece)
                    shown += more
            self.assertTrue(stopped)
            self.assertEqual(shown, "one two ")

    def test_stop_matcher_takes_the_first_of_several(self) -> None:
        self.assertEqual(StopMatcher(["cd", "b"]).push("abcd"), ("a", True))
        self.assertEqual(StopMatcher(["abc", "b"]).push("abc"), ("", True))

    def test_stop_matcher_holds_back_only_what_could_become_a_stop(self) -> None:
        matcher = StopMatcher(["aab", "xyz"])
        self.assertEqual([matcher.push(c)[0] for c in "qaaacxyq"], ["q", "", "", "a", "aac", "", "", "xyq"])
        self.assertEqual(matcher.push("aa"), ("", False))
        self.assertEqual(matcher.flush(), "aa")

    def test_stop_matcher_loses_and_repeats_nothing(self) -> None:
        chance = random.Random(5)
        for _ in range(2000):
            stops = ["".join(chance.choices("ab", k=chance.randint(1, 4))) for _ in range(chance.randint(0, 3))]
            text = "".join(chance.choices("abc", k=chance.randint(0, 20)))
            matcher, shown, stopped = StopMatcher(stops), "", False
            for character in text:
                more, stopped = matcher.push(character)
                shown += more
                if stopped:
                    break
            ends = [end for end in (text.find(stop) + len(stop) for stop in stops if stop in text)]
            if not ends:
                self.assertEqual((shown + matcher.flush(), stopped), (text, False))
            else:
                self.assertTrue(stopped)
                self.assertTrue(text.startswith(shown) and any(text[len(shown) :].startswith(s) for s in stops))
                self.assertLess(len(shown), min(ends))


class Parts(unittest.TestCase):
    def both(self, text: str, **named: Any) -> tuple[list[list[dict[str, Any]]], list[Any], str]:
        """However the text is cut into tokens, the parts add up to the same."""
        reason = named.pop("reason", "stop")
        results = []
        for size, seed in ((1, 0), (4, 1), (9, 2), (1000, 3)):
            tokens, table = tokens_of(text, size, seed)
            shown, end, told = write(writer(table, **named), tokens, reason)
            kinds = ("content", "reasoning")
            results.append(([joined(shown, end, kind) for kind in kinds], calls(shown, end), told))
        for result in results[1:]:
            self.assertEqual(result, results[0])
        return shown, end, told

    def test_writer_tells_reasoning_from_content(self) -> None:
        shown, end, reason = self.both("<think>hm, 日本</think>Tōkyō")
        self.assertEqual(joined(shown, end, "reasoning"), "hm, 日本")
        self.assertEqual(joined(shown, end), "Tōkyō")
        self.assertEqual(reason, "stop")

    def test_writer_may_begin_in_reasoning(self) -> None:
        shown, end, _ = self.both("hm</think>yes", initial="reasoning")
        self.assertEqual((joined(shown, end, "reasoning"), joined(shown, end)), ("hm", "yes"))

    def test_writer_parses_adjacent_calls(self) -> None:
        shown, end, reason = self.both("Let me see. " + CALL + OTHER)
        self.assertEqual(calls(shown, end), [("weather", '{"city": "Zürich"}'), ("clock", "{}")])
        self.assertEqual((joined(shown, end), reason), ("Let me see. ", "tool-calls"))

    def test_writer_gives_a_cut_call_back_as_text(self) -> None:
        shown, end, reason = self.both("ok " + CALL[:40], reason="length")
        self.assertEqual((joined(shown, end), calls(shown, end), reason), ("ok " + CALL[:40], [], "length"))

    def test_writer_gives_a_wrong_call_back_as_text(self) -> None:
        for wrong in (
            "<tool_call>{nonsense</tool_call>",
            '<tool_call>{"a": 1}</tool_call>',
            "<tool_call>[5]</tool_call>",
        ):
            shown, end, reason = self.both("a" + wrong + "b")
            self.assertEqual((joined(shown, end), reason), ("a" + wrong + "b", "stop"))

    def test_writer_parses_a_call_that_the_model_did_not_close(self) -> None:
        shown, end, reason = self.both(OTHER.removesuffix("</tool_call>"))
        self.assertEqual((calls(shown, end), reason), ([("clock", "{}")], "tool-calls"))

    def test_writer_keeps_length_as_the_reason_after_a_call(self) -> None:
        self.assertEqual(self.both(OTHER + "and", reason="length")[2], "length")

    def test_writer_finds_stops_in_content_only(self) -> None:
        shown, end, reason = self.both("<think>END</think>a" + OTHER + "bEND c", stops=["END"])
        self.assertEqual((joined(shown, end, "reasoning"), joined(shown, end)), ("END", "ab"))

    def test_writer_gives_held_back_text_at_the_end(self) -> None:
        for text, stops in (("abc EN", ["END"]), ("abc <thi", []), ("abc E<t", ["END"])):
            for reason in ("stop", "length"):
                shown, end, _ = self.both(text, stops=stops, reason=reason)
                self.assertEqual(joined(shown, end), text)

    def test_writer_shows_one_content_part_for_every_token_with_text(self) -> None:
        tokens, table = tokens_of("plain text, nothing else", 5, 4)
        shown, _, _ = write(writer(table, chat=False), tokens)
        self.assertEqual([len(parts) for parts in shown], [1] * len(tokens))
        tokens, table = tokens_of("a</think>b", 1000)
        self.assertEqual(len(write(writer(table), tokens)[0][0]), 1)

    def test_writer_counts_reasoning_tokens(self) -> None:
        table = [b"<think>", b"a", b"</think>", b"b"]
        made = writer(table)
        write(made, [0, 1, 1, 2, 3, 3])
        self.assertEqual(made.reasoning_tokens, 4)

    def test_writer_says_nothing_of_a_cancelled_answer(self) -> None:
        made = writer([b"abc EN"], stops=["END"])
        made.push(0)
        self.assertEqual(made.finish("cancelled"), ([], "cancelled"))

    def test_writer_shows_no_half_character_at_the_end(self) -> None:
        shown, end, _ = write(writer(BYTES, chat=False), list("aü".encode())[:-1], "length")
        self.assertEqual(joined(shown, end), "a")

    def test_scripted_segmenter_agrees_with_the_marker_machine(self) -> None:
        chance = random.Random(8)
        pieces = ["<think>", "</think>", "<tool_call>", "</tool_call>", "a", "<", "</", "tool_call>", "<thin", "b c"]
        for _ in range(500):
            text = "".join(chance.choices(pieces, k=8))
            ours = ScriptedSegmenter()
            theirs = MarkerSegmenter(
                TextStateMachine(
                    {
                        "normal": [("<think>", "reasoning"), ("<tool_call>", "tool")],
                        "reasoning": [("</think>", "normal")],
                        "tool": [("</tool_call>", "normal")],
                    }
                ),
                "normal",
            )
            told: list[list[tuple[str | None, str]]] = [[], []]
            for segmenter, runs in ((ours, told[0]), (theirs, told[1])):
                for start in range(0, len(text), 3):
                    for index, (state, piece) in enumerate(segmenter.push(text[start : start + 3])):
                        if index or not runs:
                            runs.append((state, piece))
                        else:  # mlx-lm's machine may hold text back a little longer
                            runs[-1] = (state, runs[-1][1] + piece)
                runs[-1] = (segmenter.state, runs[-1][1] + segmenter.flush())
            self.assertEqual(*told, text)


class Replay(unittest.TestCase):
    TEXTS = [
        ("naïve 日本語 👩‍👩‍👧 and more", []),
        ("a STOP-like STO and then STOP here", ["STOP here", "nothing"]),
        ("<think>hm 日本 </thin</think> so: " + CALL + OTHER + " done", ["never"]),
        ("ends in a call " + CALL, []),
    ]

    def test_a_replay_at_every_cut_gives_what_the_unbroken_answer_gave(self) -> None:
        for (text, stops), size in itertools.product(self.TEXTS, (1, 3)):
            tokens, table = tokens_of(text, size, seed=size)
            whole, end, reason = write(writer(table, stops), tokens)
            for cut in range(len(whole) + 1):
                resumed = writer(table, stops)
                for token in tokens[:cut]:
                    resumed.push(token)
                if resumed.stopped:
                    self.assertEqual(cut, len(whole))
                    continue
                self.assertEqual(write(resumed, tokens[cut:]), (whole[cut:], end, reason), (text, cut))


if __name__ == "__main__":
    unittest.main()
