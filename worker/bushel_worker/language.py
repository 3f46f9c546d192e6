"""What the head needs from a tokenizer, whichever engine is behind it."""

from typing import Any, Protocol

from .text import TextPlan


class PromptRefused(Exception):
    """Why a prompt cannot be used, in one sentence, without quoting it."""


class Language(Protocol):
    vocabulary: int
    ends: frozenset[int]  # tokens that end an answer
    abilities: dict[str, bool]

    def encode(self, prompt: dict[str, Any]) -> list[int]:
        """Raises PromptRefused."""

    def text_plan(self, prompt: dict[str, Any], ids: list[int], stops: list[str]) -> TextPlan:
        """How the answer to this prompt, encoded as `ids`, becomes text."""

    def label(self, token: int) -> tuple[str, list[int] | None]:
        """A token by itself, for log probabilities: its text and its bytes."""
