"""Tool calls as JSON between two markers: how a model is asked for them, the grammar that keeps them true
to their schemas, and how their arguments are shown while they are written.

Most models bring a template that describes tools, and many write calls as {"name", "arguments"} between
markers of their own. Models without such a template get the definitions in the system prompt and our
markers. Models that write calls in another form of their own (XML, Python) are left to it, unless a call
is demanded: then they too must write ours."""

import json
import re
from dataclasses import dataclass
from typing import Any

from .grammar import Grammars, json_schema, with_options
from .language import ConstraintRefused

CALLS_MAX = 16
OPENING, CLOSING = "<tool_call>", "</tool_call>"

Message = dict[str, Any]


@dataclass(frozen=True)
class CallStyle:
    opening: str
    closing: str


OWN_STYLE = CallStyle(OPENING, CLOSING)


def is_forced(prompt: dict[str, Any]) -> bool:
    choice = prompt.get("toolChoice", "auto")
    return bool(prompt["tools"]) and (choice == "required" or isinstance(choice, dict))


# --- the grammar


def call_grammar(prompt: dict[str, Any], style: CallStyle, grammars: Grammars, answer: dict[str, Any] | None) -> str:
    """Text, or what `answer` asks for, and calls; only calls where one is demanded."""
    tools, choice = prompt["tools"], prompt.get("toolChoice", "auto")
    if isinstance(choice, dict):
        tools = [tool for tool in tools if _function(tool)["name"] == choice["name"]]
        if not tools:
            raise ConstraintRefused(f'there is no tool "{choice["name"]}"')
    several = prompt.get("parallelToolCalls", True) and not isinstance(choice, dict)
    special = grammars.is_special(style.opening)
    opening = style.opening if special else json.dumps(style.opening)
    closing = style.closing if style.closing and grammars.is_special(style.closing) else json.dumps(style.closing)
    rules = ["%llguidance {}", f"more: {opening} call", f"call: GAP ({_names(tools)}) GAP {closing} GAP", r"GAP: /\n?/"]
    rules += [_rule(index, tool) for index, tool in enumerate(tools)]
    rest = f"more{{0,{CALLS_MAX - 1}}}" if several else ""
    if is_forced(prompt):
        rules.append(f"start: more {rest}")
    elif answer is not None:
        if answer["kind"] not in ("json-object", "json-schema"):
            raise ConstraintRefused("tools and a regex or grammar cannot be kept together; send one of them")
        rules += [f"start: told | more {rest}", f"told: %json {with_options(json_schema(answer))}"]
    else:
        head = f"head: TEXT {opening}" if special else f"head[lazy]: TEXT {opening}"
        rules += [f"start: TEXT | head call {rest}", head, r"TEXT: /(.|\n)*/"]
    return "\n".join(rules)


def _names(tools: list[Any]) -> str:
    return " | ".join(f"tool_{index}" for index in range(len(tools)))


def _rule(index: int, tool: Any) -> str:
    function = _function(tool)
    begin = json.dumps('{"name": ' + json.dumps(function["name"]) + ', "arguments": ')
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return f'tool_{index}: {begin} %json {with_options(schema)} "}}"'


def _function(tool: Any) -> dict[str, Any]:
    return tool["function"]


# --- for models whose template knows no tools


def tell_tools(messages: list[Message], tools: list[Any], choice: Any) -> list[Message]:
    """The same conversation in words that any template can render."""
    told = [_plain(message) for message in messages]
    if not tools:
        return told
    text = _instructions(tools, choice)
    if told[0]["role"] == "system":
        first = {**told[0], "content": f"{told[0]['content']}\n\n{text}" if told[0]["content"] else text}
        return [first, *told[1:]]
    return [{"role": "system", "content": text}, *told]


def _instructions(tools: list[Any], choice: Any) -> str:
    listed = "\n".join(json.dumps(_function(tool), ensure_ascii=False) for tool in tools)
    when = "Call one only when it helps; otherwise answer in your own words."
    if choice == "required":
        when = "Your answer must be a call."
    elif isinstance(choice, dict):
        when = f'Your answer must be a call of "{choice["name"]}".'
    form = f'{OPENING}{{"name": "…", "arguments": {{…}}}}{CLOSING}'
    return f"You can call these tools:\n{listed}\n\nA call is written as {form}\n{when}"


def _plain(message: Message) -> Message:
    """Calls and their results as text, in the form that calls are asked for."""
    if message["role"] == "tool":
        name = f" of {message['name']}" if message.get("name") else ""
        return {"role": "user", "content": f"Result{name}:\n{message['content']}"}
    if not message.get("toolCalls"):
        return message
    calls = "\n".join(_written(call["function"]) for call in message["toolCalls"])
    kept = {key: value for key, value in message.items() if key != "toolCalls"}
    return {**kept, "content": f"{message['content']}\n{calls}" if message["content"] else calls}


def _written(function: dict[str, Any]) -> str:
    arguments = function.get("arguments", {})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f'{OPENING}{{"name": {json.dumps(function["name"])}, "arguments": {text or "{}"}}}{CLOSING}'


# --- arguments while they are written

_HEAD = re.compile(r'\s*\{"name": ("(?:[^"\\]|\\.)*"), "arguments": ')


class CallScanner:
    """Follows one call that a grammar keeps in shape, and tells its arguments as they come."""

    def __init__(self) -> None:
        self._head = ""
        self.named = False
        self._depth, self._quoted, self._escaped, self._over = 0, False, False, False

    def push(self, text: str) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        if not self.named:
            self._head += text
            found = _HEAD.match(self._head)
            if found is None:
                return parts
            self.named = True
            parts.append({"type": "tool-call-start", "name": json.loads(found[1])})
            text = self._head[found.end() :]
        shown = self._within(text)
        if shown:
            parts.append({"type": "tool-call-delta", "arguments": shown})
        return parts

    @property
    def text(self) -> str:
        """What came before the name was known."""
        return self._head

    def _within(self, text: str) -> str:
        """As much of the text as belongs to the arguments, an object."""
        for index, character in enumerate(text):
            if self._over:
                return text[:index]
            if self._escaped:
                self._escaped = False
            elif self._quoted:
                self._escaped = character == "\\"
                self._quoted = character != '"'
            elif character == '"':
                self._quoted = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                self._over = self._depth == 0
        return text
