"""Answers that keep to a grammar: which tokens may come next, row by row.

llguidance turns a JSON schema, a regular expression or a Lark grammar and a vocabulary into a matcher; a
matcher eats the tokens of one answer and says, as bits, which may follow. Tokens that end the answer are
among them only where the grammar may stop. What a schema asks for and cannot be kept is refused by name,
at once: an answer that ended by itself is always true to its schema.

A model that reasons does so freely first: the grammar begins behind its reasoning. The state of a grammar
follows from the ids of the answer alone, so a replayed answer goes on where it was."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llguidance import LLMatcher, LLTokenizer, hf
from llguidance.numpy import fill_next_token_bitmask

from .language import ConstraintRefused
from .masks import Words, bits_of

# Blanks between the parts of JSON are bounded: a small model would rather write blanks for ever than a comma.
JSON_OPTIONS = {"whitespace_pattern": r"[ \n]{0,20}", "lenient": False, "coerce_one_of": False}


@dataclass(frozen=True)
class Thinking:
    """The tokens around a model's reasoning, and whether the prompt has already opened it."""

    start: tuple[int, ...]
    end: tuple[int, ...]
    opened: bool


class Constraint:
    """What one answer may say next."""

    def __init__(self, matcher: LLMatcher, size: int, ends: frozenset[int], thinking: Thinking | None) -> None:
        self._matcher, self._size, self._thinking = matcher, size, thinking
        self._ends = bits_of(ends, size)
        self._inside = thinking is not None and thinking.opened
        self._tail: list[int] = []  # of the reasoning, while its end is looked for
        self._eaten = 0
        self.problem: str | None = None  # the grammar turned out to be too complex on the way

    def words(self, ids: Sequence[int]) -> Words:
        """Bits of the tokens that may follow these, all of the answer so far."""
        for token in ids[self._eaten :]:
            self._eat(token)
        self._eaten = len(ids)
        if self._inside:  # anything, but an answer does not end before it has begun
            return ~self._ends
        words = np.zeros((1, self._size), np.int32)
        if self.problem is None:
            fill_next_token_bitmask(self._matcher, words, 0)
            if self._matcher.is_error():
                self._fail()
        allowed = words[0].view(np.uint32)
        if not allowed.any():
            if self.problem is None and not self._matcher.is_accepting():
                self._fail()
            return self._ends
        thinking = self._thinking
        if thinking is not None and not ids and len(thinking.start) == 1:
            allowed[thinking.start[0] >> 5] |= np.uint32(1 << (thinking.start[0] & 31))
        return allowed

    def _eat(self, token: int) -> None:
        thinking = self._thinking
        if self._inside and thinking is not None:
            self._tail = [*self._tail, token][-len(thinking.end) :]
            self._inside = tuple(self._tail) != thinking.end
        elif thinking is not None and self._eaten == 0 and not self._tail and (token,) == thinking.start:
            self._inside, self._tail = True, []
        elif self.problem is None and not self._matcher.consume_token(token):
            self._fail()

    def _fail(self) -> None:
        self.problem = _sentence(self._matcher.get_error() or "it allows no continuation")


class Grammars:
    """Makes constraints for one vocabulary. Its tables take most of a second and some memory, so they are built
    for the first answer that needs them."""

    def __init__(self, tokenizer: Any, vocabulary: int, ends: frozenset[int]) -> None:
        self._tokenizer, self._ends = tokenizer, ends
        self._vocabulary = max(vocabulary, len(tokenizer))
        self._size = (self._vocabulary + 31) // 32
        self._tables: LLTokenizer | None = None

    def constraint(self, grammar: str, thinking: Thinking | None = None) -> Constraint:
        """`grammar` is in llguidance's own form. Raises ConstraintRefused."""
        matcher = LLMatcher(self.tables(), grammar, log_level=0)
        if matcher.is_error():
            raise ConstraintRefused(_sentence(matcher.get_error()))
        made = Constraint(matcher, self._size, self._ends, thinking)
        made.words(())
        if made.problem is not None:
            raise ConstraintRefused(made.problem)
        return made

    def tables(self) -> LLTokenizer:
        if self._tables is None:
            known, ends = self._tokenizer._tokenizer, sorted(self._ends)
            try:
                self._tables = hf.from_tokenizer(known, n_vocab=self._vocabulary, eos_token=ends)
            except Exception as error:  # no fast tokenizer behind it, or one of a kind that is not known
                reason = f"this model's tokenizer cannot be used for grammars ({type(error).__name__})"
                raise ConstraintRefused(reason) from None
        return self._tables

    def is_special(self, text: str) -> bool:
        """Whether a marker is a single special token, which grammars name instead of spelling it."""
        ids = self.tables().tokenize_str(text, parse_special=True)
        return len(ids) == 1 and self.tables().is_special_token(ids[0])


def grammar_of(asked: dict[str, Any]) -> str:
    """The grammar of a frame in llguidance's form."""
    kind = asked["kind"]
    if kind == "regex":
        return LLMatcher.grammar_from_regex(asked["pattern"])
    if kind == "lark":
        return LLMatcher.grammar_from_lark(asked["text"])
    return LLMatcher.grammar_from_json_schema(json.dumps(json_schema(asked)), overrides=JSON_OPTIONS)


def json_schema(asked: dict[str, Any]) -> Any:
    """The schema of a grammar that asks for JSON."""
    if asked["kind"] == "json-object":
        return {"type": "object"}
    schema = asked["schema"]
    if not isinstance(schema, dict):
        raise ConstraintRefused("a JSON schema is an object")
    return schema


def with_options(schema: Any) -> str:
    """A schema inside a larger grammar carries our options itself."""
    known = schema if isinstance(schema, dict) else {}
    return json.dumps({**known, "x-guidance": JSON_OPTIONS})


def _sentence(error: str) -> str:
    """The first line of what llguidance says, which names the keyword; the rest quotes the grammar."""
    lines = [line.strip() for line in error.strip().splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("error:")] or lines or ["it cannot be used"]
    return told[0].removeprefix("error: ")[:300]


