"""A row: one attempt at a generation as the scheduler, the engine and the sampler know it."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .frames import Sampling
from .text import Writer


@dataclass(eq=False, slots=True)
class Row:
    attempt: str
    order: int  # of arrival; the older row keeps its memory when it runs short
    prompt: list[int]
    ids: list[int]  # generated so far, replayed ones first
    tokens_max: int  # of `ids`, replayed ones included
    sampling: Sampling
    writer: Writer
    ends: frozenset[int] = frozenset()  # tokens that end the answer
    logprobs: int | None = None
    scope: str | None = None  # whose kept prefixes it may use and add to; None: nobody's
    prefix: Any = None  # the kept beginning it was promised (a Hit)
    cached: int = 0  # tokens that were taken from it
    kept_as: int | None = None  # the number under which its caches are to be kept when it leaves
    kept_tokens: int = 0  # how many tokens they hold
    gave_up: bool = False  # its cache once, for older rows
    constraint: Any = field(default=None, repr=False)  # which tokens may follow: has words(ids) and problem
    history: Any = field(default=None, repr=False)  # the sampler's, for penalties

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.ids)

    @property
    def prefill_target(self) -> int:
        """How many tokens go into the cache before the row joins; the last one is its first step's input."""
        return self.length - 1

    @property
    def last(self) -> int:
        return self.ids[-1] if self.ids else self.prompt[-1]

    def slice(self, start: int, end: int) -> list[int]:
        """Tokens start..end of prompt and answer together."""
        split = len(self.prompt)
        if end <= split:
            return self.prompt[start:end]
        return self.prompt[start:split] + self.ids[max(0, start - split) : end - split]


class Chunk(NamedTuple):
    """Tokens start..end of a row, to be read next."""

    row: Row
    start: int
    end: int


class Draw(NamedTuple):
    """The token that a step drew for a row, and its log probabilities if they were asked for."""

    row: Row
    token: int
    logprob: float | None = None
    top: list[tuple[int, float]] | None = None
