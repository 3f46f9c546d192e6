"""What a model's tokenizer means for text: the bytes of every token, which tokens end an answer, which
stay silent, and the markers of reasoning and tool calls."""

import json
from types import SimpleNamespace
from typing import Any

from mlx_lm.generate import TextStateMachine, make_text_state_machine

from .calls import OWN_STYLE, CallScanner, CallStyle, call_grammar, is_forced
from .grammar import Grammars, Thinking, grammar_of
from .masks import Mask
from .prompts import encode_prompt
from .text import ByteDecoder, Decoder, TextPlan, WindowDecoder

_PROBE = "Hello,  wörld 12\n\t日本語 🙂 `x`"


class MarkerSegmenter:
    """mlx-lm's marker machine for one row."""

    def __init__(self, machine: TextStateMachine, initial: str) -> None:
        self._state = machine.make_state(initial)
        self.state: str | None = initial

    def push(self, text: str) -> list[tuple[str | None, str]]:
        self._state, segments = TextStateMachine.split(self._state, text)
        self.state = self._state[0]
        return segments

    def flush(self) -> str:
        self._state, text, _ = TextStateMachine.flush(self._state)
        return text


class HubLanguage:
    """The language of an mlx-lm tokenizer."""

    def __init__(self, tokenizer: Any, vocabulary: int, embeds: bool = False) -> None:
        self._tokenizer = tokenizer
        self.vocabulary = vocabulary
        self.ends = frozenset(tokenizer.eos_token_ids)
        self.abilities = {
            "chat": bool(tokenizer.has_chat_template),
            "tools": bool(tokenizer.has_tool_calling),
            "reasoning": bool(tokenizer.has_thinking),
            "grammar": True,
            "embeddings": embeds,
        }
        added = tokenizer.added_tokens_decoder
        self._special = {number: token.content for number, token in added.items() if token.special}
        for number in (*tokenizer.all_special_ids, *self.ends):
            self._special.setdefault(number, tokenizer.convert_ids_to_tokens(number) or "")
        self._bytes, self._strips = _token_bytes(tokenizer)
        self._plain = _Voice(None, self._bytes, self._special)
        self._chat = _Voice(_machine(tokenizer, tools=False), self._bytes, self._special)
        self._tools = _Voice(_machine(tokenizer, tools=True), self._bytes, self._special)
        self._own_tools = _Voice(_machine(tokenizer, tools=True, style=OWN_STYLE), self._bytes, self._special)
        self._style = _call_style(tokenizer)
        self._grammars = Grammars(tokenizer, vocabulary, self.ends)

    def encode(self, prompt: dict[str, Any]) -> list[int]:
        in_words = prompt["kind"] == "chat" and self._tells_tools(prompt)
        return encode_prompt(self._tokenizer, prompt, self.vocabulary, in_words)

    def constraint(self, prompt: dict[str, Any], ids: list[int], grammar: dict[str, Any] | None) -> Mask | None:
        style = self._call_style(prompt)
        if style is not None:
            made = call_grammar(prompt, style, self._grammars, grammar)
        elif grammar is not None:
            made = grammar_of(grammar)
        else:
            return None
        return self._grammars.constraint(made, self._thinking(ids) if prompt["kind"] == "chat" else None)

    def text_plan(self, prompt: dict[str, Any], ids: list[int], stops: list[str]) -> TextPlan:
        if prompt["kind"] != "chat":  # a raw continuation: nothing in it is a marker, and its first space counts
            return TextPlan(self._decoder(self._plain, strip=False), stops)
        tools, style = prompt["tools"], self._call_style(prompt)
        voice = self._chat if not tools else self._own_tools if style is OWN_STYLE else self._tools
        plan = TextPlan(self._decoder(voice, strip=True), stops, tools=tools)
        if voice.machine is not None:
            plan.segmenter = MarkerSegmenter(voice.machine, self._opening(ids))
        if tools:
            if style is None:
                style = CallStyle(self._tokenizer.tool_call_start, self._tokenizer.tool_call_end)
                plan.parse_call = self._tokenizer.tool_parser
            else:
                plan.new_scanner = CallScanner
            # A marker that is a special token is no text, so it is not given back as text either.
            silent = set(self._special.values())
            opening, closing = style.opening, style.closing
            plan.call_markers = ("" if opening in silent else opening, "" if closing in silent else closing)
        return plan

    def label(self, token: int) -> tuple[str, list[int] | None]:
        if token in self._special:
            return self._special[token], None
        if self._bytes is None:
            return self._tokenizer.decode([token]), None
        raw = self._bytes[token] if token < len(self._bytes) else b""
        return raw.decode("utf-8", "replace"), list(raw)

    def _tells_tools(self, prompt: dict[str, Any]) -> bool:
        """Whether tools, and calls of earlier turns, are put in words because the template has none for them."""
        if self.abilities["tools"]:
            return False
        return bool(prompt["tools"]) or "tool_calls" not in str(self._tokenizer.chat_template)

    def _call_style(self, prompt: dict[str, Any]) -> CallStyle | None:
        """How calls are to be written when a grammar keeps them; None without tools, or where the model's own
        form is not JSON and no call is demanded."""
        if prompt["kind"] != "chat" or not prompt["tools"]:
            return None
        if not self.abilities["tools"]:
            return OWN_STYLE
        return self._style or (OWN_STYLE if is_forced(prompt) else None)

    def _thinking(self, ids: list[int]) -> Thinking | None:
        tokenizer = self._tokenizer
        if not tokenizer.has_thinking:
            return None
        opened = self._opening(ids) == "reasoning"
        return Thinking(tuple(tokenizer.think_start_tokens), tuple(tokenizer.think_end_tokens), opened)

    def _decoder(self, voice: "_Voice", strip: bool) -> Decoder:
        if voice.table is not None:
            return ByteDecoder(voice.table, strip and self._strips)
        return WindowDecoder(self._tokenizer.decode, voice.silent)

    def _opening(self, ids: list[int]) -> str:
        """The state in which the answer begins: many templates open the reasoning themselves."""
        tokenizer = self._tokenizer
        if tokenizer.has_thinking and tokenizer.rfind_think_start(ids) > tokenizer.rfind_think_end(ids):
            return "reasoning"
        return tokenizer.response_initial_state or "normal"


class _Voice:
    """A marker machine, and the token table that goes with it: special tokens are silent unless they
    are, or are a piece of, one of its markers."""

    def __init__(self, machine: Any, table: list[bytes] | None, special: dict[int, str]) -> None:
        self.machine = machine[0] if machine else None
        markers = machine[1] if machine else []
        self.silent = frozenset(
            n for n, text in special.items() if not any(text and text in marker for marker in markers)
        )
        self.table = None
        if table is not None:
            self.table = list(table)
            for number, text in special.items():
                if number < len(self.table):
                    self.table[number] = b"" if number in self.silent else text.encode()


def _call_style(tokenizer: Any) -> CallStyle | None:
    """The model's own markers, when what it writes between them is JSON with name and arguments."""
    parser = tokenizer.tool_parser
    if parser is None or not getattr(parser, "__module__", "").endswith(".json_tools"):
        return None
    return CallStyle(tokenizer.tool_call_start, tokenizer.tool_call_end)


def _machine(
    tokenizer: Any, tools: bool, style: CallStyle | None = None
) -> tuple[TextStateMachine, list[str]] | None:
    """mlx-lm's machine for this tokenizer, without the tool markers when no tools were offered."""
    opening = style.opening if style else tokenizer.tool_call_start
    closing = style.closing if style else tokenizer.tool_call_end
    view = SimpleNamespace(
        has_thinking=tokenizer.has_thinking,
        think_start=tokenizer.think_start,
        think_end=tokenizer.think_end,
        has_tool_calling=tools and opening is not None,
        tool_call_start=opening,
        tool_call_end=closing,
        response_transitions=tokenizer.response_transitions,
        structural_markers=tokenizer.structural_markers,
    )
    markers = [text for edges in view.response_transitions.values() for text, _ in edges] + list(
        view.structural_markers
    )
    if view.has_thinking:
        markers += [view.think_start, view.think_end]
    if view.has_tool_calling:
        markers += [view.tool_call_start, view.tool_call_end]
    return (make_text_state_machine(view), markers) if markers else None


def _token_bytes(tokenizer: Any) -> tuple[list[bytes] | None, bool]:
    """The bytes of every token, or None when this vocabulary does not work that way; and whether the
    tokenizer drops the first space of a text."""
    try:
        decoder = json.loads(tokenizer.backend_tokenizer.decoder.__getstate__())
    except Exception:  # no fast tokenizer behind it
        return None, False
    steps = decoder.get("decoders", [decoder])
    kinds = {step["type"] for step in steps}
    names = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    added = {number: token.content for number, token in tokenizer.added_tokens_decoder.items()}
    if "ByteLevel" in kinds:
        alphabet = _byte_alphabet()
        table = [_from_alphabet(name or "", alphabet) for name in names]
        strips = False
    elif kinds & {"ByteFallback", "Metaspace"}:
        table = [_from_piece(name or "") for name in names]
        strips = any(step["type"] == "Strip" and step.get("start") for step in steps) or any(
            step["type"] == "Metaspace" and step.get("prepend_scheme", "always") != "never" for step in steps
        )
    else:
        return None, False
    for number, content in added.items():
        if number < len(table):
            table[number] = content.encode()
    probe = tokenizer.encode(_PROBE, add_special_tokens=False)
    told = b"".join(table[number] for number in probe).decode("utf-8", "replace")
    return (table, strips) if told.lstrip(" ") == tokenizer.decode(probe).lstrip(" ") else (None, False)


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's printable stand-ins: a byte that prints is itself, the others follow from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(256 + at): byte for at, byte in enumerate(others)}


def _from_alphabet(name: str, alphabet: dict[str, int]) -> bytes:
    try:
        return bytes([alphabet[character] for character in name])
    except KeyError:  # a token outside the alphabet stands for itself
        return name.encode("utf-8", "replace")


def _from_piece(name: str) -> bytes:
    if len(name) == 6 and name.startswith("<0x") and name.endswith(">"):
        return bytes([int(name[3:5], 16)])
    return name.replace("▁", " ").encode("utf-8", "replace")
