"""From a prompt frame to token ids, through the model's own chat template and tokenizer."""

import inspect
import json
from datetime import UTC, datetime
from typing import Any

from transformers.utils import chat_template_utils

from .calls import tell_tools
from .language import PromptRefused

# What a request may pass to a template although the renderer itself also reads it.
_OWN_VARIABLES = {"continue_final_message", "documents"}


class _TemplateClock:
    """Stands in for `datetime` where transformers gives templates `strftime_now`: a resumed attempt must
    render the same prompt on another machine and on another day, so time is an argument, in UTC."""

    def __init__(self) -> None:
        self.now_ms = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.now_ms / 1000, UTC)


_clock = _TemplateClock()
setattr(chat_template_utils, "datetime", _clock)  # noqa: B010


def encode_prompt(
    tokenizer: Any, prompt: dict[str, Any], vocabulary: int, in_words: bool = False
) -> list[int]:
    """`in_words`: the template knows no tools, so they are told in words. Raises PromptRefused. Called by one thread
    only: the clock above is shared."""
    if prompt["kind"] == "ids":
        ids = prompt["ids"]
        if max(ids) >= vocabulary:
            raise PromptRefused(f"token {max(ids)} is not in the vocabulary of {vocabulary}")
        return list(ids)
    try:
        if prompt["kind"] == "text":
            begin = tokenizer.bos_token
            added = begin is None or not prompt["text"].startswith(begin)
            ids = tokenizer.encode(prompt["text"], add_special_tokens=added)
        else:
            ids = _encode_chat(tokenizer, prompt, in_words)
    except PromptRefused:
        raise
    except Exception as error:  # templates and tokenizers raise whatever a message makes them raise
        raise PromptRefused(_explain(error)) from None
    if not ids:
        raise PromptRefused("the prompt is empty")
    return list(ids)


def _encode_chat(tokenizer: Any, prompt: dict[str, Any], in_words: bool) -> list[int]:
    if not tokenizer.has_chat_template:
        raise PromptRefused("this model has no chat template; send it a plain text prompt instead")
    variables = dict(prompt["variables"])
    reserved = set(inspect.signature(type(tokenizer._tokenizer).apply_chat_template).parameters) - _OWN_VARIABLES
    taken = sorted(reserved & variables.keys())
    if taken:
        raise PromptRefused(f'the template variable "{taken[0]}" is reserved')
    _clock.now_ms = prompt["nowMs"]
    messages, tools = prompt["messages"], prompt["tools"]
    if in_words:
        messages, tools = tell_tools(messages, tools, prompt.get("toolChoice", "auto")), []
    continued = bool(variables.get("continue_final_message"))
    return tokenizer.apply_chat_template(
        [_template_message(message) for message in messages],
        tools=tools or None,
        add_generation_prompt=not continued,
        tokenize=True,
        **variables,
    )


def _template_message(message: dict[str, Any]) -> dict[str, Any]:
    """Our message as Hugging Face's templates know it."""
    known: dict[str, Any] = {"role": message["role"], "content": message["content"]}
    if "name" in message:
        known["name"] = message["name"]
    if "reasoning" in message:
        known["reasoning_content"] = message["reasoning"]
    if "toolCallId" in message:
        known["tool_call_id"] = message["toolCallId"]
    if message.get("toolCalls"):
        known["tool_calls"] = [
            {
                "id": call.get("id", ""),
                "type": "function",
                "function": {
                    "name": call["function"]["name"],
                    "arguments": _arguments(call["function"].get("arguments", {})),
                },
            }
            for call in message["toolCalls"]
        ]
    return known


def _arguments(arguments: Any) -> Any:
    """Templates want the object; APIs carry it as JSON text."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _explain(error: Exception) -> str:
    kind = type(error).__name__
    if kind == "TemplateError":  # what the template's author says, such as "roles must alternate"
        return f"the chat template refuses it: {str(error)[:200]}"
    if kind in ("UnicodeEncodeError", "TypeError"):
        return "it holds text that is not valid Unicode, or a field of the wrong type"
    return f"the chat template cannot render it ({kind})"
