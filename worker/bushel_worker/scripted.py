"""A fake engine behind the real loop: no MLX, no weights, up in a moment, light enough for thousands of
streams. It is what tests and chaos runs use where the words do not matter.

`load` with `engine: "scripted"` asks for it. `model.path` may name a JSON file with any of these fields;
a path that is not a file means the defaults.

    say                   text (or list of texts, one chosen by prompt) to answer with; else invented words
    tokens                length of an invented answer; else 40 to 160, by prompt and seed
    tokensPerSecond       of every stream (20)
    jitterMs              each step takes up to this much longer (0)
    prefillTokensPerSecond  (20000)
    contextTokens         (32768)
    kvBytesPerToken       what a token is said to cost, to try memory limits (1000)
    loadMs, canaryMs      (0)
    failLoad              a sentence: loading fails with it
    merging               false: every row its own micro-batch (true)
    crashAt, hangAt, spinAt, garbageAt, raiseAt
                          a number n: when any answer reaches its n-th token, the process is killed, sleeps
                          for ever, burns a core for ever, writes junk to the frame pipe, raises
    faultRank             the rank of a group that does so (0, the head)

The vocabulary is the 256 bytes and an end token, 256: one token is one byte, so characters are split
over tokens on purpose. Answers depend on prompt, seed and position alone, so they can be resumed.
`<think>…</think>` is reasoning and `<tool_call>{json}</tool_call>` a call, as in many models; the text of
a "say" may use them."""

import json
import os
import random
import signal
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import VERSION
from .frames import Load
from .language import ConstraintRefused, PromptRefused
from .memory import CacheCost, MemoryPlan
from .rows import Chunk, Draw, Row
from .service import Service
from .text import ByteDecoder, TextPlan

END = 256
TABLE = [bytes([byte]) for byte in range(256)] + [b""]
WORDS = (
    "the bushel holds grain and every machine lends what memory it has so that a model none of them could "
    "carry alone is read by all — größer, naïve, 日本語, 🙂 — and answers come back word by word"
).split()
MARKERS = {
    "normal": {"<think>": "reasoning", "<tool_call>": "tool"},
    "reasoning": {"</think>": "normal"},
    "tool": {"</tool_call>": "normal"},
}


class ScriptedSegmenter:
    """The markers above, found the way mlx-lm's machine finds a model's."""

    def __init__(self) -> None:
        self.state: str | None = "normal"
        self._held = ""

    def push(self, text: str) -> list[tuple[str | None, str]]:
        segments = []
        self._held += text
        while True:
            edges = MARKERS[self.state or "normal"]
            found = min(((at, m) for m in edges if (at := self._held.find(m)) >= 0), default=None)
            if found is None:
                break
            segments.append((self.state, self._held[: found[0]]))
            self._held = self._held[found[0] + len(found[1]) :]
            self.state = edges[found[1]]
        possible = (n for m in MARKERS[self.state or "normal"] for n in range(1, len(m)) if self._held.endswith(m[:n]))
        cut = len(self._held) - max(possible, default=0)
        segments.append((self.state, self._held[:cut]))
        self._held = self._held[cut:]
        return segments

    def flush(self) -> str:
        text, self._held = self._held, ""
        return text


class ScriptedLanguage:
    vocabulary = END + 1
    ends = frozenset({END})
    abilities = {"chat": True, "tools": True, "reasoning": True}

    def encode(self, prompt: dict[str, Any]) -> list[int]:
        if prompt["kind"] == "ids":
            if max(prompt["ids"]) > END:
                raise PromptRefused(f"token {max(prompt['ids'])} is not in the vocabulary of {END + 1}")
            return list(prompt["ids"])
        text = prompt.get("text")
        if text is None:
            text = (
                "".join(f"{message['role']}: {message['content']}\n" for message in prompt["messages"]) + "assistant: "
            )
        try:
            return list(text.encode()) or [32]
        except UnicodeEncodeError:
            raise PromptRefused("it holds text that is not valid Unicode") from None

    def constraint(self, prompt: dict[str, Any], ids: list[int], grammar: dict[str, Any] | None) -> None:
        if grammar is not None:
            raise ConstraintRefused("a script says what it says")

    def text_plan(self, prompt: dict[str, Any], ids: list[int], stops: list[str]) -> TextPlan:
        plan = TextPlan(ByteDecoder(TABLE), stops)
        if prompt["kind"] == "chat":
            plan.segmenter = ScriptedSegmenter()
            plan.tools = prompt["tools"]
            plan.parse_call = lambda text, tools: json.loads(text)
            plan.call_markers = ("<tool_call>", "</tool_call>")
        return plan

    def label(self, token: int) -> tuple[str, list[int] | None]:
        return TABLE[token].decode("utf-8", "replace"), list(TABLE[token])


class Script:
    """The file's fields, with their defaults."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def number(self, name: str, default: float) -> float:
        value = self._fields.get(name, default)
        return float(value) if isinstance(value, (int, float)) else default

    def flag(self, name: str, default: bool) -> bool:
        return bool(self._fields.get(name, default))

    def reaches(self, name: str, position: int) -> bool:
        return self._fields.get(name) == position

    def answer(self, row: Row) -> tuple[bytes, bool]:
        """What a row will say, and whether it ends by itself."""
        source = random.Random(f"{zlib.crc32(bytes(token % 256 for token in row.prompt))} {row.sampling.seed}")
        say = self._fields.get("say")
        if isinstance(say, list) and say:
            say = say[source.randrange(len(say))]
        if isinstance(say, str):
            return say.encode(), True
        length = int(self.number("tokens", source.randint(40, 160)))
        written = bytearray()
        while len(written) < length:
            written += source.choice(WORDS).encode() + b" "
        return bytes(written[:length]), True

    def misbehave(self, position: int) -> None:
        if self.reaches("crashAt", position):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.reaches("hangAt", position):
            while True:
                time.sleep(3600)
        if self.reaches("spinAt", position):
            while True:
                pass
        if self.reaches("garbageAt", position):
            os.write(int(os.environ.get("BUSHEL_FRAMES_OUT", "4")), b'{"kind":"step",\x00\xff garbage\n[1,2\n')
        if self.reaches("raiseAt", position):
            raise RuntimeError("the script says so")


class ScriptedEngine:
    reads_first = False
    reuses_prefixes = True

    def __init__(self, script: Script) -> None:
        self._script = script
        self._batches: dict[int, list[Row]] = {}
        self._drawing: dict[int, list[Row]] = {}
        self._answers: dict[Row, bytes] = {}
        self._due: dict[int, float] = {}
        self._chance = random.Random(1)

    def prefill(self, chunks: list[Chunk], slices: int) -> Iterator[None]:
        seconds = sum(chunk.end - chunk.start for chunk in chunks) / self._script.number(
            "prefillTokensPerSecond", 20000
        )
        for _ in range(slices):
            time.sleep(seconds / slices)
            yield

    def step(self, batch: int, joining: list[Row], leaving: list[Row], forward: bool) -> None:
        rows = self._batches.get(batch, [])
        if leaving:
            gone = set(leaving)
            rows = [row for row in rows if row not in gone]
            for row in gone:
                self._answers.pop(row, None)
        begins = not self._drawing.get(batch)  # nobody waits for the first token of all
        self._drawing[batch] = rows
        for row in joining:
            self._answers[row] = self._script.answer(row)[0]
        self._batches[batch] = rows + joining
        pause = 1 / self._script.number("tokensPerSecond", 20)
        pause += self._chance.random() * self._script.number("jitterMs", 0) / 1000
        now = time.monotonic()
        self._due[batch] = now if begins else max(self._due[batch] + pause, now)

    def read(self, batch: int) -> list[Draw]:
        wait = self._due[batch] - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        return [self._draw(row) for row in self._drawing[batch]]

    def _draw(self, row: Row) -> Draw:
        position, answer = len(row.ids), self._answers[row]
        self._script.misbehave(position)
        token = answer[position] if position < len(answer) else END if row.ends else 46
        if row.logprobs is None:
            return Draw(row, token)
        return Draw(row, token, -0.25, [(token, -0.25), (32, -2.5), (101, -3.5)][: row.logprobs])

    def merge(self, batch: int, other: int) -> None:
        self._batches[batch] = self._batches[batch] + self._batches.pop(other)

    def drop(self, batch: int) -> None:
        for row in self._batches.pop(batch, []):
            self._answers.pop(row, None)
        self._drawing.pop(batch, None)
        self._due.pop(batch, None)

    def forget(self, row: Row) -> None:
        pass

    def begin(self, row: Row, entry: int, tokens: int) -> None:
        pass

    def evict(self, entry: int) -> None:
        pass

    def held(self, row: Row) -> int:
        return row.length

    def memory(self) -> tuple[int, int]:
        return 0, 0


def read_script(load: Load, progress: Callable[[str, float, float], None]) -> Script:
    """Takes as long as the script says that loading takes."""
    fields: Any = {}
    path = Path(load.model_path)
    if path.is_file():
        fields = json.loads(path.read_text())
    script = Script(fields if isinstance(fields, dict) else {})
    progress("load", 0, 1)
    time.sleep(script.number("loadMs", 0) / 1000)
    if script.flag("failLoad", False):
        raise RuntimeError(str(fields["failLoad"]))
    progress("load", 1, 1)
    return script


def scripted_service(load: Load, script: Script, engine: Any) -> Service:
    limit = load.limits.context_tokens_max
    context = int(script.number("contextTokens", 32768))
    merging = script.flag("merging", True)
    return Service(
        engine=engine,
        language=ScriptedLanguage(),
        memory=MemoryPlan(
            capacity_bytes=load.limits.memory_bytes_max,
            weights_bytes=0,
            working_bytes=0,
            costs=(CacheCost(script.number("kvBytesPerToken", 1000)),),
        ),
        limits=load.limits,
        context_tokens=min(context, limit) if limit else context,
        merging=merging,
        reading_together=merging,
        trims=True,
        tokens_per_second=script.number("prefillTokensPerSecond", 20000),
        device="scripted",
        versions={"bushel": VERSION},
        canary=[72, 105],
    )


def build_scripted(load: Load, progress: Callable[[str, float, float], None]) -> Service:
    script = read_script(load, progress)
    return scripted_service(load, script, ScriptedEngine(script))
