"""Grammars: what a schema forbids is never allowed, what cannot be kept is refused by name, and the starter
model's answers are true to their schemas in batches, under replay and behind reasoning."""

import json
import unittest
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.utils import load_tokenizer

from bushel_worker.calls import OWN_STYLE, CallScanner, call_grammar, tell_tools
from bushel_worker.frames import Sampling
from bushel_worker.grammar import Constraint, Grammars, Thinking, grammar_of
from bushel_worker.language import ConstraintRefused
from bushel_worker.masks import bits_of, mask_rows
from bushel_worker.rows import Row
from bushel_worker.sampling import SamplingPlan
from bushel_worker.text import ByteDecoder, TextPlan, Writer

from .rank import Answer, Rank, load_frame, submit_frame
from .starter import starter_folder

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": "weather", "parameters": {**PERSON, "required": ["name"]}}},
    {"type": "function", "function": {"name": "clock"}},
]
END = 2


def schema(value: Any) -> str:
    return grammar_of({"kind": "json-schema", "schema": value})


class Matching(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.tokenizer = load_tokenizer(starter_folder())
        cls.grammars = Grammars(cls.tokenizer, 49152, frozenset({END}))

    def ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False)

    def fits(self, constraint: Constraint, text: str) -> tuple[bool, bool]:
        """Whether each token of the text was allowed in its turn, and whether the answer may end behind it."""
        ids = self.ids(text)
        for position, token in enumerate(ids):
            if not allows(constraint, ids[:position], token):
                return False, False
        return True, allows(constraint, ids, END)

    def test_a_schema_allows_what_is_true_to_it_and_an_end_only_behind_it(self) -> None:
        for text, wanted in (
            ('{"name": "Ada", "age": 36}', (True, True)),
            ('{"name": "Ada", "age": 3', (True, False)),
            ('{"name":\n "Ada",\n "age": 0}', (True, True)),
            ('{"name": "Ada", "age": 360}', (False, False)),
            ('{"name": "Ada"}', (False, False)),
            ("Sure: {", (False, False)),
        ):
            with self.subTest(text):
                self.assertEqual(self.fits(self.grammars.constraint(schema(PERSON)), text), wanted)

    def test_regex_and_lark_are_kept(self) -> None:
        regex = self.grammars.constraint(grammar_of({"kind": "regex", "pattern": "[0-9]{2}-(a|b)"}))
        self.assertEqual(self.fits(regex, "42-b"), (True, True))
        lark = self.grammars.constraint(grammar_of({"kind": "lark", "text": 'start: "yes" | "no"'}))
        self.assertEqual(self.fits(lark, "maybe"), (False, False))
        self.assertEqual(self.fits(lark, "no"), (True, True))

    def test_what_cannot_be_kept_is_refused_by_its_name(self) -> None:
        bomb = {"d0": {"type": "object", "properties": {"a": {"type": "string"}}}}
        for n in range(1, 24):
            below = {"$ref": f"#/$defs/d{n - 1}"}
            bomb[f"d{n}"] = {"allOf": [below, {"anyOf": [below, {"$ref": "#/$defs/d0"}]}]}
        for value, named in (
            ({"not": {"type": "string"}}, '"not"'),
            ({"if": {}, "then": {}}, '"if", "then"'),
            ({"type": "array", "uniqueItems": True}, "uniqueItems"),
            ({"type": "string", "format": "banana"}, "banana"),
            ({"type": "string", "pattern": "(?=a)b"}, "look-a"),
            ({"type": "strnig"}, "strnig"),
            ({"oneOf": [{"multipleOf": 2, "type": "number"}, {"multipleOf": 3, "type": "number"}]}, "oneOf"),
            ({"$ref": "#/$defs/d23", "$defs": bomb}, "too large"),
            ({"type": "object", "not": {}, "x-guidance": {"lenient": True}}, '"not"'),
            ({"type": "integer", "minimum": 5, "maximum": 2}, "minimum"),
        ):
            with self.subTest(named), self.assertRaisesRegex(ConstraintRefused, named):
                self.grammars.constraint(schema(value))
        with self.assertRaises(ConstraintRefused):
            self.grammars.constraint(grammar_of({"kind": "lark", "text": "start: nothing"}))

    def test_a_grammar_begins_behind_the_reasoning(self) -> None:
        start, end = self.ids("<"), self.ids(">>")
        for opened in (True, False):
            thinking = Thinking(tuple(start), tuple(end), opened)
            constraint = self.grammars.constraint(grammar_of({"kind": "regex", "pattern": "yes"}), thinking)
            before = [] if opened else start
            thought = before + self.ids(" perhaps no") + end
            self.assertTrue(allows(constraint, [], self.ids("no")[0]) if opened else allows(constraint, [], start[0]))
            self.assertFalse(allows(constraint, thought[:-1], END))
            self.assertFalse(allows(constraint, thought, self.ids("no")[0]))
            self.assertTrue(allows(constraint, thought, self.ids("yes")[0]))

    def test_a_replayed_answer_goes_on_where_it_was(self) -> None:
        ids = self.ids('{"name": "Ada", "age": 36}')
        walked = self.grammars.constraint(schema(PERSON))
        for position in range(len(ids) + 1):
            fresh = self.grammars.constraint(schema(PERSON))
            self.assertTrue((walked.words(ids[:position]) == fresh.words(ids[:position])).all())

    def test_calls_are_free_text_or_true_to_their_tools(self) -> None:
        call = '<tool_call>{"name": "weather", "arguments": {"name": "Ulm"}}</tool_call>'
        clock = '<tool_call>{"name": "clock", "arguments": {}}</tool_call>'
        for choice, parallel, text, wanted in (
            ("auto", True, "It is sunny. <tool", (True, True)),
            ("auto", True, f"Let me see. {call}", (True, True)),
            ("auto", True, f"{call}\n{clock}", (True, True)),
            ("auto", False, f"{call}\n{clock}", (False, False)),
            ("auto", True, '<tool_call>{"name": "wether"', (False, False)),
            ("required", True, "It is", (False, False)),
            ("required", True, clock, (True, True)),
            ({"name": "weather"}, True, clock, (False, False)),
            ({"name": "weather"}, True, call, (True, True)),
        ):
            with self.subTest(text, choice=choice, parallel=parallel):
                prompt = {"tools": TOOLS, "toolChoice": choice, "parallelToolCalls": parallel}
                grammar = call_grammar(prompt, OWN_STYLE, self.grammars, None)
                self.assertEqual(self.fits(self.grammars.constraint(grammar), text), wanted)

    def test_calls_beside_a_schema(self) -> None:
        grammar = call_grammar({"tools": TOOLS}, OWN_STYLE, self.grammars, {"kind": "json-schema", "schema": PERSON})
        for text, wanted in (
            ('{"name": "Ada", "age": 36}', (True, True)),
            ('<tool_call>{"name": "clock", "arguments": {}}</tool_call>', (True, True)),
            ("Hello", (False, False)),
        ):
            self.assertEqual(self.fits(self.grammars.constraint(grammar), text), wanted)

    def test_a_plan_masks_only_the_rows_that_keep_to_a_grammar(self) -> None:
        yes, size = self.ids("yes")[0], 49152
        rows = [row(None), row(self.grammars.constraint(grammar_of({"kind": "regex", "pattern": "yes"})))]
        for temperature in (0.0, 1.0):
            for one in rows:
                one.sampling = Sampling(temperature=temperature, top_p=0.9, top_k=20)
            logits = mx.zeros((2, size))
            logits[:, 7] = 50.0
            plan = SamplingPlan(rows, on_cpu=True)
            drawn = [draw.token for draw in plan.read(plan.draw(logits))]
            self.assertEqual(drawn[0], 7)
            self.assertIn(self.tokenizer.decode([drawn[1]]), ("y", "ye", "yes"))
        self.assertTrue(allows(rows[1].constraint, [], yes))


class Calls(unittest.TestCase):
    def test_a_scanner_tells_name_and_arguments_however_they_are_cut(self) -> None:
        arguments = '{"a": "}\\"]", "b": [1, {"c": null}]}'
        text = '\n{"name": "f", "arguments": ' + arguments + "}\n"
        for size in range(1, len(text)):
            scanner, parts = CallScanner(), []
            for start in range(0, len(text), size):
                parts += scanner.push(text[start : start + size])
            self.assertEqual(parts[0], {"type": "tool-call-start", "name": "f"})
            self.assertEqual("".join(part["arguments"] for part in parts[1:]), arguments)

    def test_a_writer_tells_a_call_while_it_is_written(self) -> None:
        from .test_text import MACHINE, MarkerSegmenter, tokens_of

        text = 'So: <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>\n<tool_call>{"name": "g", "arguments": {}}</tool_call>'
        for end, wanted in ((len(text), ("tool-calls", 2, 2)), (text.index("1}}"), ("length", 1, 0))):
            tokens, table = tokens_of(text[:end], 3, seed=4)
            plan = TextPlan(ByteDecoder(table), [], MarkerSegmenter(MACHINE, "normal"), tools=TOOLS)
            plan.new_scanner = CallScanner
            writer = Writer(plan)
            parts = [part for token in tokens for part in writer.push(token)]
            last, reason = writer.finish("stop" if end == len(text) else "length")
            kinds = [part["type"] for part in parts + last]
            counted = kinds.count("tool-call-start"), kinds.count("tool-call-end")
            self.assertEqual((reason, *counted), wanted)

    def test_tools_are_told_in_words(self) -> None:
        call = {"function": {"name": "clock", "arguments": "{}"}}
        messages = [
            {"role": "user", "content": "What time is it?"},
            {"role": "assistant", "content": "", "toolCalls": [call]},
            {"role": "tool", "content": "noon", "name": "clock"},
        ]
        told = tell_tools(messages, TOOLS, "required")
        self.assertEqual([message["role"] for message in told], ["system", "user", "assistant", "user"])
        self.assertIn('"weather"', told[0]["content"])
        self.assertIn("must be a call", told[0]["content"])
        self.assertIn('<tool_call>{"name": "clock", "arguments": {}}</tool_call>', told[2]["content"])
        self.assertIn("noon", told[3]["content"])


class Masks(unittest.TestCase):
    def test_bits_are_the_tokens(self) -> None:
        class Fixed:
            problem = None

            def words(self, ids: Any) -> Any:
                return bits_of(frozenset({0, 31, 32, 63}), 2)

        allowed = mask_rows([(Fixed(), [])], 70)
        self.assertEqual(np.flatnonzero(allowed[0]).tolist(), [0, 31, 32, 63])
        self.assertEqual(allowed.shape, (1, 70))


class Answers(unittest.TestCase):
    rank: Rank

    @classmethod
    def setUpClass(cls) -> None:
        cls.rank = Rank(load_frame(str(starter_folder()), "mlx")).__enter__()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.rank.close()

    def ask(self, frame: dict[str, Any]) -> Answer:
        self.rank.send(frame)
        return self.rank.answer(frame["attempt"])

    def test_a_batch_of_rows_with_and_without_grammars(self) -> None:
        free = submit_frame("free", "Name three fruits.", tokensMax=24)
        alone = self.ask(free)
        made = [submit_frame(f"s{n}", f"Invent person {n}.", tokensMax=60) for n in range(2)]
        for n, frame in enumerate(made):
            frame["grammar"] = {"kind": "json-schema", "schema": PERSON}
            frame["sampling"] |= {"temperature": 1.0 if n else 0, "seed": str(n)}
        for frame in ({**free, "attempt": "again"}, *made):
            self.rank.send(frame)
        self.assertEqual(self.rank.answer("again").tokens, alone.tokens)
        for frame in made:
            answer = self.rank.answer(frame["attempt"])
            self.assertEqual(answer.reason, "stop")
            value = json.loads(answer.text())
            self.assertEqual(set(value), {"name", "age"})
            self.assertTrue(0 <= value["age"] <= 99 and len(value["name"]) <= 12)
        whole = self.rank.answer("s1").tokens
        for cut in (1, 5, len(whole) - 1):
            again = self.ask({**made[1], "attempt": f"cut{cut}", "replay": whole[:cut]})
            self.assertEqual(whole[:cut] + again.tokens, whole)

    def test_a_schema_that_cannot_be_kept_is_refused(self) -> None:
        refused = self.ask(submit_frame("bad", grammar={"kind": "json-schema", "schema": {"not": {}}})).end
        self.assertEqual(refused["code"], "bad-grammar")
        self.assertIn('"not"', refused["message"])

    def test_a_demanded_call_comes_and_a_count_is_only_a_count(self) -> None:
        frame = submit_frame("call", "What is the weather in Ulm?", tokensMax=80)
        frame["prompt"] |= {"tools": TOOLS, "toolChoice": {"name": "weather"}}
        answer = self.ask(frame)
        self.assertEqual(answer.reason, "tool-calls")
        self.assertEqual(answer.parts[0], {"type": "tool-call-start", "name": "weather"})
        told = "".join(part["arguments"] for part in answer.parts if part["type"] == "tool-call-delta")
        self.assertIn("name", json.loads(told))
        counted = self.ask({**frame, "attempt": "count", "purpose": "count"})
        self.assertEqual((counted.tokens, counted.end["promptTokens"]), ([], answer.end["promptTokens"]))


def allows(constraint: Constraint, ids: list[int], token: int) -> bool:
    return bool(constraint.words(ids)[token >> 5] >> (token & 31) & 1)


def row(constraint: Constraint | None) -> Row:
    plan = TextPlan(ByteDecoder([]), [])
    made = Row("a", 0, [1], [], 9, Sampling(), Writer(plan))
    made.constraint = constraint
    return made


if __name__ == "__main__":
    unittest.main()
