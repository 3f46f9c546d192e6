"""Small checks of JSON values, to be put together to the shape of a frame. Each takes a value and where it
was found, and returns what is kept of it; numbers and missing fields are judged as zod judges them."""

import re
from collections.abc import Callable
from typing import Any

Check = Callable[[Any, str], Any]

WHOLE_MAX = (1 << 53) - 1  # what a JSON number holds exactly on the other side


class FrameError(Exception):
    """Where a frame differs from its shape."""


def _refuse(where: str, wanted: str) -> Any:
    raise FrameError(f"{where or 'the frame'} must be {wanted}")


def anything(value: Any, where: str) -> Any:
    return value


def boolean(value: Any, where: str) -> bool:
    return value if isinstance(value, bool) else _refuse(where, "true or false")


def number(
    low: float | None = None, high: float | None = None, above: float | None = None, whole: bool = False
) -> Check:
    def check(value: Any, where: str) -> Any:
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or value != value
            or abs(value) == float("inf")
        ):
            return _refuse(where, "a number")
        if whole and (value != int(value) or abs(value) > WHOLE_MAX):
            return _refuse(where, "a whole number")
        if low is not None and value < low or above is not None and value <= above or high is not None and value > high:
            return _refuse(where, f"between {low if above is None else above} and {high}")
        return int(value) if whole else float(value)

    return check


def text(pattern: str = "", length: int = 0) -> Check:
    def check(value: Any, where: str) -> str:
        if not isinstance(value, str) or len(value) < length:
            return _refuse(where, "a text" if length == 0 else "a text that is not empty")
        return value if not pattern or re.fullmatch(pattern, value, re.ASCII) else _refuse(where, f"like {pattern}")

    return check


def one_of(*values: str) -> Check:
    return lambda value, where: (
        value if isinstance(value, str) and value in values else _refuse(where, " or ".join(values))
    )


def array(item: Check, length: int = 0) -> Check:
    def check(value: Any, where: str) -> list[Any]:
        if not isinstance(value, list) or len(value) < length:
            return _refuse(where, f"a list of at least {length}")
        return [item(entry, f"{where}[{index}]") for index, entry in enumerate(value)]

    return check


def pair(first: Check, second: Check) -> Check:
    def check(value: Any, where: str) -> tuple[Any, Any]:
        if not isinstance(value, list) or len(value) != 2:
            return _refuse(where, "a pair")
        return first(value[0], f"{where}[0]"), second(value[1], f"{where}[1]")

    return check


def record(item: Check) -> Check:
    def check(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            return _refuse(where, "an object")
        return {key: item(entry, f"{where}.{key}") for key, entry in value.items()}

    return check


def nullable(check: Check) -> Check:
    return lambda value, where: None if value is None else check(value, where)


class optional:
    """Marks a field that may be absent (but not null)."""

    def __init__(self, check: Check) -> None:
        self.check = check


def shape(**fields: Check | optional) -> Check:
    def check(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            return _refuse(where, "an object")
        kept = {}
        for name, field in fields.items():
            inner = f"{where}.{name}" if where else name
            if name in value:
                kept[name] = (field.check if isinstance(field, optional) else field)(value[name], inner)
            elif not isinstance(field, optional):
                _refuse(inner, "present")
        return kept

    return check


def union(tag: str, **shapes: dict[str, Any]) -> Check:
    """An object whose `tag` says which of the shapes it has."""
    checks = {name.replace("_", "-"): shape(**{tag: anything}, **fields) for name, fields in shapes.items()}

    def check(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict) or not isinstance(value.get(tag), str) or value[tag] not in checks:
            return _refuse(f"{where}.{tag}" if where else tag, " or ".join(checks))
        return checks[value[tag]](value, where)

    return check
