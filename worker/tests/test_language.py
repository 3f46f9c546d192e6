"""Prompts and tokenizers as mlx-lm brings them: templates, markers, special tokens, first spaces."""

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

from mlx_lm.utils import load_tokenizer

from bushel_worker.hub_language import HubLanguage
from bushel_worker.language import PromptRefused
from bushel_worker.text import ByteDecoder, WindowDecoder, Writer

ALPHABET = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
CHARACTERS = [chr(b) for b in ALPHABET] + [chr(256 + n) for n in range(256 - len(ALPHABET))]
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
SPM = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ],
}
TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m.role }}: {{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.arguments.city }}</tool_call>{% endfor %}"
    "<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant: {% endif %}"
)
TOOL_TEMPLATE = TEMPLATE + "{# <tool_call> tool_call.name #}"


class LanguageCase(unittest.TestCase):
    def language(
        self, special: list[str], plain: list[str], template: str | None = TEMPLATE, **named: Any
    ) -> HubLanguage:
        """A language whose vocabulary is single bytes and a few whole tokens."""
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        folder = Path(temporary.name)
        if named.get("pieces"):
            words = [f"<0x{n:02X}>" for n in range(256)] + ["▁", *"abcdefghijklmnopqrstuvwxyz:"]
            normalizer: Any = {
                "type": "Sequence",
                "normalizers": [
                    {"type": "Prepend", "prepend": "▁"},
                    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
                ],
            }
        else:
            words, normalizer = CHARACTERS, None
        names = ["<|end|>", "<|start|>", *special, *plain]
        added = [
            {
                "id": len(words) + n, "content": name, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": name not in plain,
            }
            for n, name in enumerate(names)
        ]  # fmt: skip
        document = {
            "version": "1.0",
            "added_tokens": added,
            "normalizer": normalizer,
            "pre_tokenizer": None if named.get("pieces") else BYTE_LEVEL,
            "post_processor": None,
            "decoder": named.get("decoder", BYTE_LEVEL),
            "model": {
                "type": "BPE", "vocab": {word: n for n, word in enumerate(words)}, "merges": [],
                "byte_fallback": bool(named.get("pieces")), "fuse_unk": False, "unk_token": None, "dropout": None,
            },
        }  # fmt: skip
        (folder / "tokenizer.json").write_text(json.dumps(document))
        (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>"}
        if template:
            settings["chat_template"] = template
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        tokenizer = load_tokenizer(folder, {"trust_remote_code": False})
        return HubLanguage(tokenizer, len(tokenizer) + 5)

    def chat(self, *contents: str, **named: Any) -> dict[str, Any]:
        messages = [{"role": "user", "content": content} for content in contents]
        return {"kind": "chat", "messages": messages, "tools": [], "variables": {}, "nowMs": 1_700_000_000_000, **named}

    def write(
        self, language: HubLanguage, prompt: dict[str, Any], ids: list[int], reason: str = "stop"
    ) -> tuple[Any, str]:
        writer = Writer(language.text_plan(prompt, language.encode(prompt), []))
        parts = [part for token in ids for part in writer.push(token)]
        end, told = writer.finish(reason)
        return parts + end, told

    def ids(self, language: HubLanguage, text: str) -> list[int]:
        return language._tokenizer.encode(text, add_special_tokens=False)


def told(parts: list[dict[str, Any]], kind: str = "content") -> str:
    return "".join(part["text"] for part in parts if part["type"] == kind)


class Prompts(LanguageCase):
    def test_the_clock_of_a_template_is_the_requests(self) -> None:
        language = self.language([], [], "{{ strftime_now('%Y-%m-%d %H:%M') }}")
        shown = language._tokenizer.decode(language.encode(self.chat("x")))
        self.assertEqual(shown, "2023-11-14 22:13")

    def test_messages_reach_the_template_as_it_knows_them(self) -> None:
        language = self.language([], [])
        call = {"function": {"name": "weather", "arguments": '{"city": "Ulm"}'}}
        messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "", "toolCalls": [call]}]
        shown = language._tokenizer.decode(language.encode(self.chat(messages=messages)))
        wanted = "<|start|>user: hi<|end|><|start|>assistant: <tool_call>Ulm</tool_call><|end|><|start|>assistant: "
        self.assertEqual(shown, wanted)

    def test_a_last_message_can_be_continued(self) -> None:
        language = self.language([], [])
        prompt = self.chat("It is", variables={"continue_final_message": True})
        self.assertEqual(language._tokenizer.decode(language.encode(prompt)), "<|start|>user: It is")

    def test_variables_reach_the_template_unless_they_are_reserved(self) -> None:
        language = self.language([], [], "{{ mood }}")
        shown = language._tokenizer.decode(language.encode(self.chat("x", variables={"mood": "sunny"})))
        self.assertEqual(shown, "sunny")
        for name in ("chat_template", "tools", "tokenize", "padding"):
            with self.assertRaisesRegex(PromptRefused, f'"{name}" is reserved'):
                language.encode(self.chat("x", variables={name: "y"}))

    def test_what_a_template_refuses_is_refused_in_its_words(self) -> None:
        language = self.language([], [], "{{ raise_exception('roles must alternate') }}")
        with self.assertRaisesRegex(PromptRefused, "roles must alternate"):
            language.encode(self.chat("x"))
        language = self.language([], [], "{{ messages[0].content.nothing.here }}")
        with self.assertRaisesRegex(PromptRefused, "cannot render") as caught:
            language.encode(self.chat("a secret"))
        self.assertNotIn("secret", str(caught.exception))

    def test_a_template_cannot_reach_out_of_its_sandbox(self) -> None:
        for escape in (
            "{{ ''.__class__.__mro__ }}{{ ''.__class__.__subclasses__() }}",
            "{% for i in range(10**9) %}x{% endfor %}",
        ):
            language = self.language([], [], escape)
            try:
                shown = language._tokenizer.decode(language.encode(self.chat("x")))
            except PromptRefused:
                continue
            self.assertNotIn("class", shown)

    def test_a_model_without_template_takes_text(self) -> None:
        language = self.language([], [], None)
        self.assertFalse(language.abilities["chat"])
        with self.assertRaisesRegex(PromptRefused, "no chat template; send it a plain text"):
            language.encode(self.chat("x"))
        self.assertEqual(len(language.encode({"kind": "text", "text": "abc"})), 3)

    def test_ids_must_be_in_the_vocabulary(self) -> None:
        language = self.language([], [])
        self.assertEqual(language.encode({"kind": "ids", "ids": [3, 4]}), [3, 4])
        with self.assertRaises(PromptRefused):
            language.encode({"kind": "ids", "ids": [10**6]})


class Tokens(LanguageCase):
    def test_special_tokens_never_show(self) -> None:
        language = self.language(["<|pad|>"], [])
        for prompt in (self.chat("x"), {"kind": "text", "text": "x"}):
            parts, _ = self.write(language, prompt, self.ids(language, "a<|pad|>b<|start|>c<|end|>"))
            self.assertEqual(told(parts), "abc")

    def test_every_byte_survives(self) -> None:
        language = self.language([], [])
        text = "\x00 tab\t naïve 日本 🙂 \u200d"
        parts, _ = self.write(language, self.chat("x"), self.ids(language, text))
        self.assertEqual(told(parts), text)
        self.assertIsInstance(language.text_plan(self.chat("x"), [1], []).decoder, ByteDecoder)

    def test_tokens_beyond_the_tokenizer_are_silent(self) -> None:
        language = self.language([], [])
        self.assertEqual(self.write(language, self.chat("x"), [language.vocabulary - 1])[0], [])
        self.assertEqual(language.label(language.vocabulary - 1), ("", []))

    def test_the_first_space_counts_in_a_continuation_only(self) -> None:
        language = self.language([], [], decoder=SPM, pieces=True)
        ids = self.ids(language, "the end")
        self.assertEqual(told(self.write(language, self.chat("x"), ids)[0]), "the end")
        self.assertEqual(told(self.write(language, {"kind": "text", "text": "x"}, ids)[0]), " the end")
        text = "日本 é"
        self.assertEqual(told(self.write(language, self.chat("x"), self.ids(language, text))[0]), text)

    def test_other_vocabularies_are_decoded_in_a_window(self) -> None:
        language = self.language([], [], decoder={"type": "BPEDecoder", "suffix": "_"})
        plan = language.text_plan(self.chat("x"), [1], [])
        self.assertIsInstance(plan.decoder, WindowDecoder)

    def test_label_names_a_token(self) -> None:
        language = self.language([], [])
        self.assertEqual(language.label(self.ids(language, "a")[0]), ("a", [97]))
        self.assertEqual(language.label(256), ("<|end|>", None))


class Markers(LanguageCase):
    def test_reasoning_is_found_whether_its_markers_are_special_or_not(self) -> None:
        for special, plain in ((["<think>", "</think>"], []), ([], ["<think>", "</think>"])):
            language = self.language(special, plain)
            self.assertTrue(language.abilities["reasoning"])
            parts, _ = self.write(language, self.chat("x"), self.ids(language, "<think>hm</think>yes"))
            self.assertEqual((told(parts, "reasoning"), told(parts)), ("hm", "yes"))
            parts, _ = self.write(language, {"kind": "text", "text": "x"}, self.ids(language, "<think>hm"))
            self.assertEqual(told(parts), "hm" if special else "<think>hm")

    def test_a_template_that_opens_the_reasoning_begins_in_it(self) -> None:
        language = self.language([], ["<think>", "</think>"], TEMPLATE + "<think>")
        parts, _ = self.write(language, self.chat("x"), self.ids(language, "hm</think>yes"))
        self.assertEqual((told(parts, "reasoning"), told(parts)), ("hm", "yes"))

    def test_tool_calls_are_calls_only_when_tools_were_offered(self) -> None:
        language = self.language([], ["<tool_call>", "</tool_call>"], TOOL_TEMPLATE)
        self.assertTrue(language.abilities["tools"])
        call = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
        tools = [{"type": "function", "function": {"name": "f"}}]
        parts, reason = self.write(language, self.chat("x", tools=tools), self.ids(language, call))
        self.assertEqual((parts[0], parts[-1]), ({"type": "tool-call-start", "name": "f"}, {"type": "tool-call-end"}))
        self.assertEqual(("".join(part["arguments"] for part in parts[1:-1]), reason), ('{"a": 1}', "tool-calls"))
        parts, reason = self.write(language, self.chat("x"), self.ids(language, call))
        self.assertEqual((told(parts), reason), (call, "stop"))

    def test_special_markers_of_a_cut_call_are_not_given_back(self) -> None:
        tools = [{"type": "function", "function": {"name": "f"}}]
        for special, plain, wanted in (
            (["<tool_call>", "</tool_call>"], [], '{"na'),
            ([], ["<tool_call>", "</tool_call>"], '<tool_call>{"na'),
        ):
            language = self.language(special, plain, TOOL_TEMPLATE)
            parts, reason = self.write(
                language, self.chat("x", tools=tools), self.ids(language, '<tool_call>{"na'), "length"
            )
            self.assertEqual((told(parts), reason), (wanted, "length"))


if __name__ == "__main__":
    unittest.main()
