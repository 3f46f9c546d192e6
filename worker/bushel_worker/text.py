"""From token ids to the parts of an answer: whole characters, stop strings, and what is content, what
reasoning and what a tool call. Nothing here knows the engine; replaying ids through the same objects
brings them to the same state, which is what makes an answer resumable."""

import codecs
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

Part = dict[str, Any]
CallParser = Callable[[str, list[Any]], Any]


class Decoder(Protocol):
    """Turns one row's tokens into text, holding back what is not a whole character yet."""

    def push(self, token: int) -> str: ...


class Segmenter(Protocol):
    """Tells reasoning and tool calls from content by the model's markers, and drops the markers."""

    state: str | None

    def push(self, text: str) -> list[tuple[str | None, str]]:
        """(state, text) for every state passed; the first is the state before, the last the one after."""

    def flush(self) -> str:
        """Text that was held back because it might have become a marker."""


class Scanner(Protocol):
    """Follows a call while it is written."""

    named: bool  # whether the call has been told

    def push(self, text: str) -> list[Part]: ...


class ByteDecoder:
    """For vocabularies whose tokens are byte strings: a token's bytes, assembled to UTF-8."""

    def __init__(self, table: list[bytes], strip_first_space: bool = False) -> None:
        self._table = table
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._strip = strip_first_space

    def push(self, token: int) -> str:
        text = self._utf8.decode(self._table[token]) if token < len(self._table) else ""
        if self._strip and text:
            self._strip = False
            return text[1:] if text[0] == " " else text
        return text


class WindowDecoder:
    """For any other vocabulary: decodes a short window again and takes what is new in it."""

    def __init__(self, decode: Callable[[list[int]], str], silent: frozenset[int]) -> None:
        self._decode, self._silent = decode, silent
        self._window: list[int] = []
        self._shown = 0  # tokens of the window whose text is out; they stay as context for spaces

    def push(self, token: int) -> str:
        if token in self._silent:
            return ""
        self._window.append(token)
        before = self._decode(self._window[: self._shown])
        text = self._decode(self._window)
        waiting = text.endswith("\ufffd") or len(text) <= len(before)
        if waiting and len(self._window) - self._shown < 8:
            return ""
        self._window = self._window[self._shown :]
        self._shown = len(self._window)
        return text[len(before) :]


class StopMatcher:
    """Finds stop strings in a stream, holding back only what could still become one."""

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.found: str | None = None

    def push(self, text: str) -> tuple[str, bool]:
        """What may be shown, and whether a stop string was completed."""
        if not self._stops:
            return text, False
        self._held += text
        found = [(at, stop) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if found:
            at, self.found = min(found)
            shown, self._held = self._held[:at], ""
            return shown, True
        keep = max(self._possible(stop) for stop in self._stops)
        cut = len(self._held) - keep
        shown, self._held = self._held[:cut], self._held[cut:]
        return shown, False

    def flush(self) -> str:
        shown, self._held = self._held, ""
        return shown

    def _possible(self, stop: str) -> int:
        """How many of the last characters are a beginning of the stop string."""
        for length in range(min(len(stop) - 1, len(self._held)), 0, -1):
            if self._held.endswith(stop[:length]):
                return length
        return 0


@dataclass
class TextPlan:
    """How one generation's tokens become text."""

    decoder: Decoder
    stops: list[str] = field(default_factory=list)
    segmenter: Segmenter | None = None
    tools: list[Any] = field(default_factory=list)
    parse_call: CallParser | None = None
    # Where a grammar keeps calls in shape, they are told while they are written.
    new_scanner: Callable[[], Scanner] | None = None
    # What to write around a call that turns out not to be one.
    call_markers: tuple[str, str] = ("", "")


class Writer:
    """The text of one generation."""

    def __init__(self, plan: TextPlan) -> None:
        self._plan = plan
        self._stops = StopMatcher(plan.stops)
        self._state: str | None = plan.segmenter.state if plan.segmenter else "normal"
        self._call = ""
        self._scanner: Scanner | None = None
        self._calls = 0
        self.stopped = False  # by a stop string, or because the model closed its answer
        self.reasoning_tokens = 0

    def push(self, token: int) -> list[Part]:
        """The parts that one more token releases."""
        text = self._plan.decoder.push(token)
        parts: list[Part] = []
        if self._plan.segmenter is None:
            if text:
                self._content(text, parts)
            return parts
        before = self._state
        for index, (state, piece) in enumerate(self._plan.segmenter.push(text) if text else ()):
            if self.stopped:
                break
            if index:
                self._enter(state, parts)
            self._take(piece, parts)
        if before == "reasoning" or self._state == "reasoning":
            self.reasoning_tokens += 1
        return parts

    def finish(self, reason: str) -> tuple[list[Part], str]:
        """What is still held back, and the reason as the caller should know it."""
        parts: list[Part] = []
        if reason == "cancelled":
            return parts, reason
        if not self.stopped:
            if self._plan.segmenter is not None:
                self._take(self._plan.segmenter.flush(), parts)
            if self._state == "tool":
                self._close_call(parts, ended=reason == "stop")
            self._add("content", self._stops.flush(), parts)
        if self._stops.found is not None:
            parts.append({"type": "stop", "text": self._stops.found})
        return parts, "tool-calls" if reason == "stop" and self._calls else reason

    def _take(self, text: str, parts: list[Part]) -> None:
        if self._state == "tool":
            self._call += text
            if text and self._plan.new_scanner is not None:
                self._scanner = self._scanner or self._plan.new_scanner()
                parts.extend(self._scanner.push(text))
        elif self._state == "reasoning":
            self._add("reasoning", text, parts)
        elif self._state == "normal":
            self._content(text, parts)

    def _enter(self, state: str | None, parts: list[Part]) -> None:
        if self._state == "tool":
            self._close_call(parts, ended=True)
        elif self._state == "normal" and state != "normal":
            self._add("content", self._stops.flush(), parts)
        self._state = state
        self.stopped = self.stopped or state is None

    def _content(self, text: str, parts: list[Part]) -> None:
        shown, self.stopped = self._stops.push(text)
        self._add("content", shown, parts)

    def _close_call(self, parts: list[Part], ended: bool) -> None:
        """A call that parses becomes parts; anything else is given back as the text that it was."""
        source, self._call = self._call, ""
        scanner, self._scanner = self._scanner, None
        if scanner is not None and scanner.named:
            self._calls += ended
            if ended:
                parts.append({"type": "tool-call-end"})
            return
        calls = self._parsed(source) if ended else None
        if calls:
            parts.extend(calls)
            self._calls += len(calls)
        elif source:
            opening, closing = self._plan.call_markers
            self._add("content", opening + source + (closing if ended else ""), parts)

    def _parsed(self, source: str) -> list[Part] | None:
        if self._plan.parse_call is None:
            return None
        try:
            found = self._plan.parse_call(source, self._plan.tools)
            return [_call_part(call) for call in (found if isinstance(found, list) else [found])]
        except Exception:  # the parsers raise whatever the text makes them raise
            return None

    @staticmethod
    def _add(kind: str, text: str, parts: list[Part]) -> None:
        """One part per token and kind: neighbours of one kind are joined."""
        if not text:
            return
        if parts and parts[-1]["type"] == kind:
            parts[-1]["text"] += text
        else:
            parts.append({"type": kind, "text": text})


def _call_part(call: dict[str, Any]) -> Part:
    arguments = call.get("arguments", call.get("parameters", {}))
    if not isinstance(call["name"], str) or not call["name"]:
        raise ValueError("a call needs a name")
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"type": "tool-call", "name": call["name"], "arguments": written}
