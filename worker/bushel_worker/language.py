"""What the head needs from a tokenizer, whichever engine is behind it."""

from typing import TYPE_CHECKING, Any, Protocol

from .text import TextPlan

if TYPE_CHECKING:  # numpy comes with it, which a scripted engine does without
    from .masks import Mask


class PromptRefused(Exception):
    """Why a prompt cannot be used, in one sentence, without quoting it."""


class ConstraintRefused(Exception):
    """Why an answer cannot be kept to what was asked for, in one sentence."""


class Language(Protocol):
    vocabulary: int
    ends: frozenset[int]  # tokens that end an answer
    abilities: dict[str, bool]

    def encode(self, prompt: dict[str, Any]) -> list[int]:
        """Raises PromptRefused."""

    def constraint(self, prompt: dict[str, Any], ids: list[int], grammar: dict[str, Any] | None) -> "Mask | None":
        """What the answer must keep to: a grammar, the shape of tool calls, or nothing. Raises
        ConstraintRefused."""

    def text_plan(self, prompt: dict[str, Any], ids: list[int], stops: list[str]) -> TextPlan:
        """How the answer to this prompt, encoded as `ids`, becomes text."""

    def label(self, token: int) -> tuple[str, list[int] | None]:
        """A token by itself, for log probabilities: its text and its bytes."""
